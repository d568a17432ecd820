package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"caisson/executor"
	"caisson/settings"
)

// The exit statuses.
const (
	exitOK       = 0
	exitFailed   = 1
	exitSetting  = 2
	exitReplaced = 3
)

// Process is what the program gets from its surroundings.
type Process struct {
	Args    []string // without the program's name
	Environ []string // as of os.Environ
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// errShown ends a command whose failure has been shown already.
var errShown = errors.New("failed")

// usageError is a wrong command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Run runs the command that the arguments name and returns the exit status. It
// returns once everything that it started has ended; ctx ends it early.
func Run(ctx context.Context, p Process) int {
	root := p.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	return p.status(root.ExecuteContext(ctx))
}

// status is what the program exits with after err, which it shows where nobody has yet.
func (p Process) status(err error) int {
	var (
		faults settings.Faults
		wrong  executor.Faults
		usage  usageError
		status statusError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errShown):
		return exitFailed
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, errReplaced):
		_, _ = fmt.Fprintf(p.Stderr, "caisson: %v\n", err)
		return exitReplaced
	case errors.As(err, &faults):
		printFaults(p.Stderr, faults)
		return exitSetting
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintf(p.Stderr, "%v\n", wrong)
		return exitSetting
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(p.Stderr, "caisson: %v\n\ncaisson --help lists what there is\n", err)
		return exitSetting
	default:
		_, _ = fmt.Fprintf(p.Stderr, "caisson: %v\n", err)
		return exitFailed
	}
}

// root is the command tree. Called without a subcommand the program serves, as
// MCP clients start it, unless somebody sits at a terminal: then it helps.
func (p Process) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "caisson",
		Short: "Hardened containers for LLM agents, on a remote Docker engine",
		Long: "Caisson is an MCP server that gives LLM agents hardened containers on a remote Docker engine.\nIt is set up by environment variables; caisson config lists them with what is in force.\n\n" +
			"Without a command it serves MCP over stdio, like caisson serve, unless its standard input is a terminal: then it shows this.",
		Args:          usageArgs(cobra.NoArgs),
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       readBuild().version,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if settings.IsTerminal(p.Stdin) {
				return cmd.Help()
			}
			return p.serve(cmd.Context(), p.Environ, false)
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.serveCommand(), p.sessionsCommand(), p.doctorCommand(), p.configCommand(), p.manifestCommand(), p.principalsCommand(), p.versionCommand(), p.healthCommand(), p.workerCommand())
	return root
}

// usageArgs makes a check of arguments report a wrong command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// printFaults shows every fault at once, one a line.
func printFaults(w io.Writer, faults settings.Faults) {
	_, _ = fmt.Fprintf(w, "caisson: %s\n%v\n", faultHead(faults), faults)
}

func faultHead(faults settings.Faults) string {
	if len(faults) == 1 {
		return "a setting is wrong:"
	}
	return fmt.Sprintf("%d settings are wrong:", len(faults))
}
