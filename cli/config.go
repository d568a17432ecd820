package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"caisson/settings"
)

func (p Process) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print every setting, what is in force and where it came from",
		Long:  "Print every setting with what is in force and whether it came from the environment or is the default.\nValues that look like secrets are not shown. Exit status 2 when a setting is wrong.",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, err := settings.Load(p.Environ)
			var faults settings.Faults
			if err != nil && !errors.As(err, &faults) {
				return err
			}
			rows := [][]string{{"SETTING", "VALUE", "FROM"}}
			for _, e := range s.Entries() {
				rows = append(rows, []string{e.Name, e.Value, e.Source})
			}
			if _, err := fmt.Fprint(p.Stdout, columns(rows)); err != nil {
				return err
			}
			for _, warning := range s.Warnings {
				_, _ = fmt.Fprintf(p.Stderr, "caisson: %s\n", warning)
			}
			return check(s, faults)
		},
	}
}
