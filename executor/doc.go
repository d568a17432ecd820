// Package executor holds what is said about tool calls before one is made: the
// manifest that declares tools, toolkits and agents, the execution policy that
// says where each of them runs, and the envelope and the result that travel
// between the server and the worker in a tool's container.
//
// It also runs them: a Toolbox holds the tools of a manifest, and calls each on the
// Executor that the policy says, made when it is first needed and shared by all
// calls of one declared executor and owner.
//
// # Faults and refusals
//
// What is wrong with a manifest whatever server reads it (a wrong key, a value
// out of range, a name that is taken) is a Fault with its line, and the whole
// manifest is not taken; all faults are reported at once. A rule that is well
// formed and that this server cannot or may not build (an executor that this
// build does not have, a loosening that the operator has not allowed) is kept,
// with the reason: the tools that it catches are unavailable, and never run
// anywhere else (D9).
//
// # Concurrency
//
// A Manifest and all that hangs from it is read-only once Parse has returned it,
// and may be read from any goroutine. A Toolbox owns the goroutines that list
// toolkits and its executors own those that make and remove containers; Close waits
// for all of them. A call's output is read by the goroutine that called.
package executor

//go:generate go test -run ^TestDocs . -update
