package cli

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"caisson/principal"
	"caisson/settings"
)

func (p Process) principalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "principals",
		Short: "Check a file of principals, or make a token for one",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.principalsCheckCommand(), p.principalsHashCommand())
	return cmd
}

func (p Process) principalsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a file of principals, each fault with its line",
		Long:  "Say what is wrong with a file of principals, each fault with its line. Whether a policy exists is checked by the server that has the manifest.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			book, err := principal.ReadFile(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Stdout, "%s: %d principals, nothing is wrong\n", args[0], len(book.Names()))
			return err
		},
	}
}

func (p Process) principalsHashCommand() *cobra.Command {
	var fresh bool
	cmd := &cobra.Command{
		Use:   "hash",
		Short: "Hash the token on standard input, or make a random one",
		Long: "Read a token from standard input, one line, and print its token_sha256.\n" +
			"With --new, or at a terminal, make a random token and print both: give the token to the client and the hash to the file.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			token := ""
			if !fresh && !settings.IsTerminal(p.Stdin) {
				line, err := bufio.NewReader(io.LimitReader(p.Stdin, longestToken+2)).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				if token = strings.TrimRight(line, "\r\n"); token == "" {
					return usageError{errors.New("there is no token on standard input; --new makes a random one")}
				}
			}
			if token == "" {
				var raw [32]byte
				_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
				token = base64.RawURLEncoding.EncodeToString(raw[:])
				_, _ = fmt.Fprintf(p.Stdout, "token: %s\n", token)
			} else if err := principal.CheckToken(token); err != nil {
				return usageError{err}
			}
			sum := sha256.Sum256([]byte(token))
			_, err := fmt.Fprintf(p.Stdout, "token_sha256: %s\n", hex.EncodeToString(sum[:]))
			return err
		},
	}
	cmd.Flags().BoolVar(&fresh, "new", false, "make a random token, whatever standard input is")
	return cmd
}

const longestToken = 16 << 10
