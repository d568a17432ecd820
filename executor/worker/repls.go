package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"caisson/executor/wire"
)

const (
	// mostREPLs is how many one host runs.
	mostREPLs = 16
	// idleTime is how long a REPL lives without a call.
	idleTime = 30 * time.Minute
	// codeTime is how long a call may run that does not say so.
	codeTime = 60 * time.Second
	// codeGrace is kept of the call's own time, to say what happened.
	codeGrace = 250 * time.Millisecond
	// mostLost is how many names of lost variables a sentence has.
	mostLost = 40
	// mostNotes is for how many ended REPLs it is remembered what they have lost.
	mostNotes = 1000
)

// repls are the REPLs of a host, one for each tool and instance. Its methods may run
// concurrently.
type repls struct {
	children *children
	group    bool
	mu       sync.Mutex
	all      map[string]*repl
	lost     map[string]string // what the next call of a REPL that is not in all has to be told
	closed   bool
	stop     chan struct{}
	sweeper  sync.WaitGroup
}

func newREPLs(c *children, keeps bool) *repls {
	r := &repls{children: c, group: keeps, all: map[string]*repl{}, lost: map[string]string{}, stop: make(chan struct{})}
	if keeps {
		r.sweeper.Go(r.sweep)
	}
	return r
}

// repl is one REPL. Its process is started at the first call, and again after it has
// died.
type repl struct {
	turn  chan struct{} // holds one while a call is under way
	inner *interpreter
	used  time.Time
	lost  string // what the next call has to be told
	gone  bool   // it is not among the REPLs any more
}

// close kills every REPL and waits for calls under way, whose contexts have ended.
func (r *repls) close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	r.mu.Unlock()
	close(r.stop)
	r.sweeper.Wait()
	for _, one := range r.all {
		one.turn <- struct{}{}
		if one.inner != nil {
			one.inner.kill()
		}
	}
}

// coded are the arguments of a call.
type coded struct {
	Code    *string  `json:"code"`
	Timeout *float64 `json:"timeout_seconds"`
}

// session is what a REPL's call gives.
type session struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Value  string `json:"value,omitempty"`
	Error  string `json:"error,omitempty"`
	Note   string `json:"note,omitempty"`
}

// repl runs code in the REPL of the envelope's tool and instance.
func (h *host) repl(ctx context.Context, e wire.Envelope, _ watch) (wire.Result, error) {
	name, err := part[string](e, "name")
	if err != nil {
		return wire.Result{}, err
	}
	instance := ""
	if _, ok := e.InitArgs["instance"]; ok {
		if instance, err = part[string](e, "instance"); err != nil {
			return wire.Result{}, err
		}
	}
	var args coded
	if json.Unmarshal(e.Arguments, &args) != nil || args.Code == nil {
		return wire.Result{}, errors.New("a REPL needs code, a text, and takes timeout_seconds, a number")
	}
	one, err := h.repls.find(ctx, string(quotedList([]string{name, instance})))
	if err != nil {
		return wire.Result{}, err
	}
	defer func() {
		one.used = time.Now()
		<-one.turn
	}()
	return h.repls.run(ctx, one, *args.Code, codeDeadline(ctx, args.Timeout))
}

// codeDeadline is how long the code may run.
func codeDeadline(ctx context.Context, wanted *float64) time.Duration {
	within := codeTime
	if wanted != nil && *wanted > 0 && *wanted < wire.DefaultTimeout.Seconds()*1000 {
		within = time.Duration(*wanted * float64(time.Second))
	}
	if until, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(until)-codeGrace)
	}
	return max(within, 50*time.Millisecond)
}

// run runs code in a REPL whose turn the caller has.
func (r *repls) run(ctx context.Context, one *repl, code string, within time.Duration) (wire.Result, error) {
	var notes []string
	if one.inner != nil && !one.inner.alive() {
		one.lost = "the Python process had ended since the last call (" + one.inner.kill().text + "); " + lostNames(one.inner.names)
		one.inner = nil
	}
	fresh := one.inner == nil
	if fresh {
		inner, err := startInterpreter(r.children, r.group)
		if err != nil {
			return wire.Result{}, err
		}
		one.inner = inner
	}
	if one.lost != "" {
		notes, one.lost = append(notes, one.lost), ""
	}
	reply, printed, death := one.inner.run(ctx, code, within)
	s := session{Stdout: printed.stdout, Stderr: printed.stderr, Value: reply.Value, Error: reply.Error}
	s.Note = strings.Join(append(append(notes, printed.notes...), reply.Notes...), "; ")
	metadata := map[string]json.RawMessage{"repl_fresh": json.RawMessage(fmt.Sprint(fresh))}
	if death.text != "" {
		s.Error = "the Python process was lost: " + death.text + "; " + lostNames(one.inner.names) + "; the next call starts a new one"
		metadata["repl_death"] = quoted(death.cause)
		if death.cause == "cancelled" { // nobody hears it now
			one.lost = "the Python process was ended when the last call was cancelled; " + lostNames(one.inner.names)
		}
		one.inner = nil
	}
	value, err := json.Marshal(s)
	if err != nil {
		return wire.Result{}, err
	}
	result := success(value)
	result.Metadata = metadata
	switch {
	case death.text != "":
		result.Success, result.Status, result.Error = false, wire.StatusError, s.Error
	case s.Error != "":
		result.Success, result.Status, result.Error = false, wire.StatusDoneWithErrors, lastLine(s.Error)
		if reply.Kind == "MemoryError" {
			metadata["repl_limit"] = quoted("memory")
			result.Error = fmt.Sprintf("the code ran out of memory (MemoryError): a REPL has %d MiB of address space; its variables are kept", one.inner.space>>20)
		}
	}
	for i, image := range reply.Images {
		result.Images = append(result.Images, wire.File{Name: fmt.Sprintf("figure-%d.png", i+1), MIMEType: "image/png", Data: image})
	}
	return result, nil
}

// lostNames says which variables are gone.
func lostNames(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "it had no variables from earlier calls"
	case n > mostLost:
		return fmt.Sprintf("its variables are lost: %s and %d more", strings.Join(names[:mostLost], ", "), n-mostLost)
	default:
		return "its variables are lost: " + strings.Join(names, ", ")
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
