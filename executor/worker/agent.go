package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"caisson/executor/wire"
)

// configureEnding marks the program that sets an agent up.
const configureEnding = ".configure"

var agentForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// question is what an agent is asked, and all of the call that reaches it (AGT-5,
// AGT-7).
type question struct {
	Question string `json:"question"`
	Previous bool   `json:"include_previous_results"`
}

// agent asks the agent that is registered under the envelope's agent_ref: a program
// of that name in the folder of agents. It is set up once by NAME.configure, where
// there is one, and gets the question as JSON on its standard input (AGT-2).
func (h *host) agent(ctx context.Context, e wire.Envelope, w watch) (wire.Result, error) {
	name, err := part[string](e, "agent_ref")
	if err != nil {
		return wire.Result{}, err
	}
	program, err := h.registered(name)
	if err != nil {
		return wire.Result{}, err
	}
	var ask question
	if json.Unmarshal(e.Arguments, &ask) != nil || ask.Question == "" {
		return wire.Result{}, errors.New("an agent is asked with a question, a text that is not empty")
	}
	if err := h.configure(ctx, name, w); err != nil {
		return wire.Result{}, err
	}
	input, err := json.Marshal(ask)
	if err != nil {
		return wire.Result{}, err
	}
	end, err := h.children.run(ctx, []string{program}, input, w)
	switch {
	case err != nil:
		return wire.Result{}, err
	case end.code != 0 || end.signal != "":
		return failed(end, "the agent "+name), nil
	case strings.TrimSpace(string(end.stdout)) == "":
		return wire.Result{}, fmt.Errorf("the agent %s gave no answer", name)
	}
	return shape(end.stdout), nil
}

// registered finds an agent's program (AGT-3).
func (h *host) registered(name string) (string, error) {
	program := filepath.Join(h.options.agents, name)
	if agentForm.MatchString(name) && !strings.HasSuffix(name, configureEnding) && executable(program) {
		return program, nil
	}
	var known []string
	entries, _ := os.ReadDir(h.options.agents)
	for _, entry := range entries {
		if other := entry.Name(); !strings.HasSuffix(other, configureEnding) && executable(filepath.Join(h.options.agents, other)) {
			known = append(known, other)
		}
	}
	slices.Sort(known)
	there := "it has no agents"
	if len(known) > 0 {
		there = "it has " + strings.Join(known, ", ")
	}
	return "", fmt.Errorf("the tool image has no agent %q; %s", name, there)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// configure runs an agent's set-up before its first question in this container. One
// that fails is run again before the next question.
func (h *host) configure(ctx context.Context, name string, w watch) error {
	program := filepath.Join(h.options.agents, name+configureEnding)
	if !executable(program) {
		return nil
	}
	dir, err := privateDir(h.options.residentDir)
	if err != nil {
		return err
	}
	lock, err := lockFile(ctx, filepath.Join(dir, "configured-"+name))
	if err != nil {
		return fmt.Errorf("set up the agent %s: %w", name, err)
	}
	defer func() { _ = lock.Close() }()
	if info, err := lock.Stat(); err == nil && info.Size() > 0 {
		return nil
	}
	end, err := h.children.run(ctx, []string{program}, nil, w)
	if err != nil {
		return fmt.Errorf("set up the agent %s: %w", name, err)
	}
	if end.code != 0 || end.signal != "" {
		return errors.New(failed(end, "the set-up of the agent "+name).Error)
	}
	_, err = lock.WriteString("done\n")
	return err
}
