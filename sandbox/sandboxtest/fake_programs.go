package sandboxtest

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// codeCut is what the command cut ends with: its stream breaks before anybody
// knows how it ended.
const codeCut = -1

// program is a command of the fake: what it prints goes to out, its exit code
// is what it returns.
type program func(p *process, out io.Writer, args []string) int

// programs is what a fake session's image holds. Each does what its name says
// elsewhere; those that exist nowhere else are
//
//	rep TEXT N      prints TEXT N times
//	fill N          prints N letters x
//	await PATH      waits until the file is there
//	hold CODE       exits with CODE while something it started keeps the output
//	cut             its stream breaks
func programs() map[string]program {
	return map[string]program{
		"true":   func(*process, io.Writer, []string) int { return 0 },
		"false":  func(*process, io.Writer, []string) int { return 1 },
		"echo":   echo,
		"printf": printf,
		"cat":    cat,
		"sleep":  sleep,
		"yes":    yes,
		"env":    env,
		"pwd":    pwd,
		"rep":    rep,
		"fill":   func(p *process, out io.Writer, args []string) int { return rep(p, out, []string{"x", args[0]}) },
		"await":  await,
		"hold":   hold,
		"cut":    func(*process, io.Writer, []string) int { return codeCut },
	}
}

// shell runs argv: a program, or sh or bash with -c and a script of commands
// separated by ; that may end in >&2.
func (p *process) shell(argv []string) int {
	if len(argv) != 3 || argv[1] != "-c" || argv[0] != "sh" && argv[0] != "bash" {
		return p.program(argv, sandbox.Stdout)
	}
	code := 0
	for _, line := range strings.Split(argv[2], ";") {
		argv, stream := words(line), sandbox.Stdout
		if n := len(argv); n > 0 && argv[n-1] == ">&2" {
			argv, stream = argv[:n-1], sandbox.Stderr
		}
		if len(argv) == 0 {
			continue
		}
		if argv[0] == "exit" {
			code, _ = strconv.Atoi(argv[1])
			return code
		}
		if code = p.program(argv, stream); code == codeCut || p.ended() {
			return code
		}
	}
	return code
}

func (p *process) program(argv []string, stream sandbox.Stream) int {
	run, ok := programs()[argv[0]]
	if guest, installed := p.session.fake.guest(argv[0]); installed {
		run, ok = func(p *process, out io.Writer, args []string) int {
			return guest(Command{Session: p.session.info.ID, Args: args, Env: p.spec.Env, Stdin: p, Stdout: out, Stderr: writer{p, sandbox.Stderr}, Killed: p.killed, Cause: p.endedBy, File: p.session.files.take})
		}, true
	}
	if !ok {
		_, _ = fmt.Fprintf(writer{p, sandbox.Stderr}, "%s: not found\n", argv[0])
		return codeNotFound
	}
	code := run(p, writer{p, stream}, argv[1:])
	if p.ended() {
		return codeKilled
	}
	return code
}

func (p *process) endedBy() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

func (p *process) ended() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// words splits at spaces; single quotes keep them.
func words(line string) []string {
	var all []string
	var word strings.Builder
	quoted, any := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				all = append(all, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if any {
		all = append(all, word.String())
	}
	return all
}

func echo(_ *process, out io.Writer, args []string) int {
	_, _ = io.WriteString(out, strings.Join(args, " ")+"\n")
	return 0
}

// printf knows the escapes \n, \r, \xNN and \NNN.
func printf(_ *process, out io.Writer, args []string) int {
	text := args[0]
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b = append(b, text[i])
			continue
		}
		i++
		digits, base := 3, 8
		switch {
		case text[i] == 'n':
			b = append(b, '\n')
			continue
		case text[i] == 'r':
			b = append(b, '\r')
			continue
		case text[i] == 'x':
			i, digits, base = i+1, 2, 16
		}
		n, err := strconv.ParseUint(text[i:min(i+digits, len(text))], base, 8)
		if err != nil {
			return 1
		}
		b = append(b, byte(n))
		i += digits - 1
	}
	_, _ = out.Write(b)
	return 0
}

func cat(p *process, out io.Writer, args []string) int {
	if len(args) == 0 {
		_, _ = io.Copy(out, p)
		return 0
	}
	for _, name := range args {
		file, err := p.session.files.read(sandbox.FileRead{Path: name, Limit: sandbox.FilePieceLimit})
		if err != nil {
			_, _ = fmt.Fprintf(writer{p, sandbox.Stderr}, "cat: %s: no such file\n", name)
			return 1
		}
		_, _ = out.Write(file.Content)
	}
	return 0
}

func sleep(p *process, _ io.Writer, args []string) int {
	d, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return 1
	}
	timer := time.NewTimer(time.Duration(d * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.killed:
	}
	return 0
}

func yes(_ *process, out io.Writer, _ []string) int {
	line := []byte(strings.Repeat("y\n", 2048))
	for {
		if _, err := out.Write(line); err != nil {
			return 1
		}
	}
}

// rep prints in pieces of an odd size, so that characters are split.
func rep(_ *process, out io.Writer, args []string) int {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 1
	}
	all := []byte(strings.Repeat(args[0], n))
	for chunk := range slices.Chunk(all, 4099) {
		if _, err := out.Write(chunk); err != nil {
			return 1
		}
	}
	return 0
}

func env(p *process, out io.Writer, args []string) int {
	for _, name := range args {
		value, ok := p.spec.Env[name]
		if !ok {
			value = p.session.spec.Env[name]
		}
		_, _ = io.WriteString(out, value.Reveal()+"\n")
	}
	return 0
}

func pwd(p *process, out io.Writer, _ []string) int {
	dir, err := resolve(p.spec.Cwd)
	if err != nil {
		return 1
	}
	_, _ = io.WriteString(out, dir+"\n")
	return 0
}

func await(p *process, _ io.Writer, args []string) int {
	full, err := resolve(args[0])
	if err != nil || !p.session.files.await(full, p.killed) {
		return 1
	}
	return 0
}

func hold(p *process, _ io.Writer, args []string) int {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return 1
	}
	p.mu.Lock()
	p.own = &code
	p.mu.Unlock()
	p.exec.CommandExited(code)
	<-p.killed
	return code
}
