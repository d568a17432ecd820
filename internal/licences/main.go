// Command licences tells under which terms the modules of a release stand. It
// reads a line "PATH VERSION DIRECTORY" for each from standard input, and fails
// where one has no licence, or one that does not simply permit.
//
//	licences list     a JSON object of each path's SPDX identifier
//	licences notice   the text that a release carries: every licence in full
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 || args[0] != "list" && args[0] != "notice" {
		return errors.New("usage: licences list|notice")
	}
	modules, err := read(in)
	if err != nil {
		return err
	}
	if args[0] == "notice" {
		return writeNotice(out, modules)
	}
	ids := map[string]string{}
	for _, m := range modules {
		ids[m.path] = m.licence
	}
	return json.NewEncoder(out).Encode(ids)
}

// read reads the modules and their licences; all that are wrong are told at once.
func read(in io.Reader) ([]module, error) {
	var (
		modules []module
		wrong   []error
	)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3) // a directory may hold blanks
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("%q is not PATH VERSION DIRECTORY", lines.Text())
		}
		m, err := look(fields[0], fields[1], fields[2])
		if err != nil {
			wrong = append(wrong, err)
		}
		modules = append(modules, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(modules) == 0 {
		return nil, errors.New("no module was named")
	}
	return modules, errors.Join(wrong...)
}
