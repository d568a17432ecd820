// Package sandbox is the contract between what asks for sandboxes (the MCP
// face, the tool executors) and what makes them (a Provider), together with all
// that is the same for every provider: the spec and the policy that bounds it,
// the manager of owners, quotas and idle time, the records of running commands
// and the spools that keep their output.
//
// It imports nothing else of this module, so that a provider can be added
// without touching a line of it.
//
// # What holds for every provider
//
//   - An exit code is reported only when it is known (ExitStatus.Code is nil
//     otherwise). It is never zero by default.
//   - Output that is missing is counted and said (Spool, Exec notes).
//   - A create that fails leaves nothing behind on the engine.
//   - Destroying what is gone is success.
//   - What cannot be enforced is refused with KindRejected or
//     KindNotSupported; nothing is made weaker in silence.
//   - No error text, note, label or log line carries the value of a Secret or
//     what a command printed.
//
// # Goroutines
//
// An Exec owns its timer and the stop that may be in flight; Exec.Close waits
// for both. The Manager owns its sweep; Manager.Close waits for it. Providers
// own the goroutine that drains a command's stream and end it when the Exec's
// backend is closed.
package sandbox
