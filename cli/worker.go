package cli

import "github.com/spf13/cobra"

// statusError ends the program with a status of a command's own.
type statusError int

func (statusError) Error() string { return "failed" }

// workerCommand is the worker of tool calls as a command of this binary: a tool that
// runs on this host by the operator's exception needs no second binary.
func (p Process) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "worker",
		Short:              "Run one tool call from its envelope",
		Hidden:             true,
		DisableFlagParsing: true, // the worker reads its own
		RunE: func(_ *cobra.Command, args []string) error {
			if code := p.work(args); code != exitOK {
				return statusError(code)
			}
			return nil
		},
	}
}
