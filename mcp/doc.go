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
// # The protocol's way
//
// A transport (stdio.go, web_post.go, web_sse.go) reads a message (message.go), finds
// whose it is (peer.go, web_session.go), notes it so that it can be cancelled
// (requests.go) and has it answered (answer.go): mcp-go works on it, with an exchange
// of its own (exchange.go) in the place of a session, whose notices go out on the
// request's own response. mcp-go's transports are not used.
//
// # Goroutines
//
//   - Each request runs on the goroutine of its POST, or on one of its client's own,
//     which the end of the client waits for; calls counts the calls, and Server.Close
//     waits for all of them.
//   - A call with a progress token has one more, as has a response that may become a
//     stream, and an exchange that mcp-go sends on; each ends before the answer goes out.
//   - The end of an HTTP client session may start one that destroys its default
//     session; Server.Close waits for it.
//   - The sweepers of client sessions end with Server.Close, which waits for them;
//     streams end then too, and their HTTP server waits for those.
//   - ServeStdio's reader ends with its input. What a client does not read keeps its
//     writer until the output is closed; the end does not wait for that.
//
//go:generate go test -run TestToolListIsAsPublished|TestDocs . -update
package mcp
