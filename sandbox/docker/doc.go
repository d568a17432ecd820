// Package docker is the provider of sandboxes on a Docker engine, local or
// remote over mTLS. It is the only package that imports the engine's client.
//
// # What it keeps to
//
//   - All that it does goes through the engine's API: no process is started, no
//     host path mounted (CON-1, CON-2).
//   - One function makes every create's body (createBody); hardening is set
//     nowhere else.
//   - It keeps no list of sessions. A container's name and labels say what it is,
//     and both must agree; nothing else makes a container ours.
//   - Every call to the engine is bounded, by its caller's context and by a limit
//     of the package. What a failed call may have made is removed on a clock of
//     its own.
//   - An exit code is the command's only if its wrapper came to its end.
//
// # Ways to the engine
//
// dialer makes every connection: those of the client's transport and those that
// attach takes over for an exec's streams. It does TLS itself, so that both honour
// a context, and reads the identity's files again when they change.
//
// # Goroutines
//
// All are started through Provider.work and waited for by Provider.Close:
//
//   - one for each command, which drains its stream into the spool (running.drain)
//     and ends with the stream; Close of the exec cuts it;
//   - one for each command with a stdin of its caller's (stdinPump.run);
//   - one for each pull and each first look into an image, which outlive the call
//     that began them, up to a limit;
//   - one for each connection that is dialled ahead.
//
// pipe starts one for its input and waits for it before it returns.
package docker
