// Package cli is the program as one starts it: subcommands, flags, exit
// statuses, signals, and the wiring of settings, provider, manager and MCP
// server. It is the only package that looks at settings.
//
// # Exit status
//
//	0  done; for serve: the client or a signal ended it and all was tidied up
//	1  something failed at run time, or doctor found something that fails
//	2  a setting, a manifest or the command line is wrong; every fault is on
//	   standard error
//	3  for serve: another server has taken this one's SANDBOX_DOCKER_INSTANCE.
//	   Whoever starts servers again must not start this one: it would take the
//	   instance back
//
// # Streams
//
// Standard output carries what was asked for: on stdio JSON-RPC and nothing
// else. Everything else goes to standard error. A standard error that nobody
// reads never holds the program up: lines are dropped and counted.
//
// # Goroutines of serve
//
//	stderr writer   started first, ended last; waited for, within a bound
//	signals         ends the serving context at the first signal; the second
//	                has its default effect, which ends the process at once
//	HTTP accept     http.Server.Serve, ended by Shutdown and waited for
//	HTTP request    where clients show certificates: sees whether its authority
//	                stays; its request waits for it
//
// The MCP server and the manager own theirs and end them when closed.
package cli
