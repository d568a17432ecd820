// Package mcp is the face that clients see: the built-in tools and the file
// resources, over stdio, Streamable HTTP and SSE. It is the only package that
// imports mcp-go, and it reaches sandboxes through sandbox.Manager alone.
//
// # A call's way
//
// mcp-go hands a call to Server.handler. serve admits it (calls.go), gives it
// its deadline or its progress, and runs the tool. The tool decodes its
// arguments (args.go, field.go), finds the session (default_session.go), does
// its work and gives back a reply: one struct for programs, which is also where
// its output schema comes from, and one text for models. errors.go turns what
// failed into an error result; nothing is ever returned to mcp-go as a Go error.
// Resources have no error results: resource_code.go gives theirs a protocol code.
//
// # Adding a tool
//
// A file tool_<name>.go with an input struct, its fields, a result struct, the
// description and the method that does the work; a line in tools.go; then
// `go test ./mcp -update` and a look at the diff: names, arguments, fields and
// error codes are public.
//
// # Goroutines
//
//   - Each call runs on a goroutine of mcp-go's; calls counts it, and
//     Server.Close waits for all of them.
//   - A call with a progress token has one more, which ends before the call
//     answers.
//   - The end of an HTTP client session may start one that destroys its default
//     session; Server.Close waits for it.
//   - mcp-go's own (stdio workers, streams, the sweeper of client sessions) end
//     with ServeStdio and Server.Close.
//
//go:generate go test -run TestToolListIsAsPublished|TestDocs . -update
package mcp
