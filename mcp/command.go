package mcp

import (
	"errors"
	"strings"
	"time"

	"caisson/sandbox"
)

// command is what exec and run have in common: what to run, and how.
type command struct {
	command *string
	argv    []string
	shell   *string
	cwd     *string
	env     map[string]string
	stdin   *string
	timeout *int64
}

// fields of a command. cwd is exec's alone: run starts in a fresh workspace.
func (in *command) fields() []field {
	return []field{
		textField("command", &in.command, "A shell command line. Give this or argv."),
		wordsField("argv", &in.argv, "The program and its arguments, taken literally: no shell looks at them. Give this or command."),
		textField("shell", &in.shell, "Which shell runs command; auto is bash where the image has it, else sh.").oneOf("auto", "sh", "bash").orElse("auto"),
		textField("stdin", &in.stdin, "What the command reads from its standard input. Without it, it sees the end at once."),
		mapField("env", &in.env, "Environment variables for this command alone, over the session's."),
	}
}

// spec makes the sandbox's form of the command, for a session that has bash or
// has not.
func (in *command) spec(hasBash bool) (sandbox.ExecSpec, error) {
	argv, err := in.words(hasBash)
	if err != nil {
		return sandbox.ExecSpec{}, err
	}
	spec := sandbox.ExecSpec{Argv: argv, Cwd: or(in.cwd, ""), Env: secrets(in.env), Stdin: []byte(or(in.stdin, ""))}
	if in.timeout != nil {
		spec.Timeout = seconds(*in.timeout)
	}
	return spec, nil
}

// check finds what is wrong before a session is made for the command.
func (in *command) check() error {
	switch {
	case in.command != nil && in.argv != nil:
		return sandbox.Invalid("argv", "give command (for a shell) or argv (without one), not both")
	case in.command == nil && in.argv == nil:
		return sandbox.Invalid("command", "give command (for a shell) or argv (without one)")
	case in.command != nil:
		return checkName("command", *in.command)
	case len(in.argv) == 0:
		return sandbox.Invalid("argv", "argv is empty: it needs at least the program to run")
	case in.shell != nil && *in.shell != "auto":
		return sandbox.Invalid("shell", "shell goes with command: argv is run without one")
	}
	return nil
}

// asSent makes an error name the argument that the client has sent: what runs
// is always a list of words, of which a command line is one.
func (in *command) asSent(err error) error {
	var e *sandbox.Error
	if in.command == nil || !errors.As(err, &e) || e.Field != "argv" {
		return err
	}
	renamed := *e
	renamed.Field, renamed.Text = "command", strings.Replace(e.Text, "word 2 of the command", "the command", 1)
	return &renamed
}

func (in *command) words(hasBash bool) ([]string, error) {
	if in.command == nil {
		return in.argv, nil
	}
	shell := or(in.shell, "auto")
	switch {
	case shell == "bash" && !hasBash:
		return nil, sandbox.Invalid("shell", "the session's image has no bash; use sh, or leave shell out")
	case shell == "auto" && hasBash:
		shell = "bash"
	case shell == "auto":
		shell = "sh"
	}
	return []string{shell, "-c", *in.command}, nil
}

func secrets(env map[string]string) map[string]sandbox.Secret {
	if len(env) == 0 {
		return nil
	}
	all := make(map[string]sandbox.Secret, len(env))
	for name, value := range env {
		all[name] = sandbox.NewSecret(value)
	}
	return all
}

// The waits of exec, where a call does not name one.
const (
	defaultWait = 30 * time.Second
	longestWait = 600
)
