package cli

import (
	"errors"
	"fmt"

	"caisson/executor"
	"caisson/settings"
)

// setupError is what the user of a stdio client reads in the place of every answer:
// the faults and the mend.
type setupError struct {
	faults error
	text   string
}

func (e setupError) Error() string { return e.text }
func (e setupError) Unwrap() error { return e.faults }

// answerable makes a setupError of what an operator can mend; any other error stays
// as it is.
func answerable(err error) error {
	var (
		faults settings.Faults
		wrong  executor.Faults
	)
	switch {
	case errors.As(err, &faults):
		return setupError{faults, fmt.Sprintf("%s\n%v\nSet them in the environment that this server is started with (the env of its entry in the client's configuration) and start it again. `caisson doctor` checks them",
			faultHead(faults), faults)}
	case errors.As(err, &wrong):
		return setupError{wrong, fmt.Sprintf("the manifest is wrong:\n%v\nMend it and start the server again. `caisson manifest check` checks it", wrong)}
	default:
		return err
	}
}
