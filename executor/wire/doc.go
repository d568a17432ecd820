// Package wire holds what travels between the server and the worker in a tool's
// container: the envelope of a call, its result in a block of lines that only the
// nonce of the call opens, and lines of progress.
//
// The worker imports nothing else of ours, so that it starts quickly. Everything
// here is pure; values may be used from any goroutine.
package wire
