// Package worker is what runs inside a tool's container: it reads the envelope of a
// call, runs the tool, and prints the result block.
//
// # Where things run
//
// A command or an agent runs below the worker of its call, in its process group: who
// kills the call's group kills it. Whatever it leaves behind is killed when the call
// ends. A toolkit's server and a REPL live as long as their host: the worker of the
// call, or, in warm mode, the resident process, which the first call starts and later
// ones reach over a socket that only the user of the session can open. The resident
// holds none of a call's files, so that the call ends when its worker does.
//
// # What is trusted
//
// Nothing that a tool, a server or a program of a REPL says: lines, lists and
// results are bounded, and what does not fit is dropped and counted. A tool runs
// under the same user as the worker and can end it; it harms its own calls alone.
//
// # Concurrency
//
// A worker runs one call; the resident runs many at a time, one of each REPL. Every
// goroutine is waited for by what started it.
package worker
