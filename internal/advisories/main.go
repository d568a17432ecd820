// Command advisories judges what govulncheck found. It reads its JSON from
// standard input and the page on security that it is given: a finding passes where
// no version mends it yet and the page has a line with the reason why it may stay.
//
//	govulncheck -format json ./... | advisories docs/security.md
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: advisories PAGE")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	scan, err := readScan(in)
	if err != nil {
		return err
	}
	return judge(out, scan, readPage(string(text)))
}
