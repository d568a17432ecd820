package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"caisson/executor/wire"
)

const (
	mostTools = 500
	// mostList bounds the list of a server's tools, in bytes, and mostPages how often
	// it may say that there is more.
	mostList  = 4 << 20
	mostPages = 100
	// mostProgress is how many reports of progress of one call are passed on.
	mostProgress = 1000
)

// knownVersions are the revisions of MCP that a server may answer with, ours first.
func knownVersions() []string {
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// initialize opens the conversation. We offer the server nothing.
func (s *server) initialize(ctx context.Context) error {
	text, err := s.request(ctx, "initialize", func(int64) any {
		return map[string]any{
			"protocolVersion": knownVersions()[0], "capabilities": map[string]any{},
			"clientInfo": map[string]string{"name": "caisson-worker", "version": "1"},
		}
	}, nil)
	if err != nil {
		return fmt.Errorf("start the server of the toolkit %s: %w", s.name, err)
	}
	var answer struct {
		Version string          `json:"protocolVersion"`
		Info    json.RawMessage `json:"serverInfo"`
	}
	if json.Unmarshal(text, &answer) != nil || !slices.Contains(knownVersions(), answer.Version) {
		return fmt.Errorf("the server of the toolkit %s speaks MCP %q, which the worker does not; it speaks %s",
			s.name, firstOf(answer.Version, 40), strings.Join(knownVersions(), ", "))
	}
	if len(answer.Info) < shownStderr {
		s.info = answer.Info
	}
	return s.send(ctx, message{Method: "notifications/initialized"})
}

// firstOf is the beginning of a text of more than most bytes, with the mark of a cut.
func firstOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// list reads the server's tools, page by page. What is over the bounds is left out,
// and counted in the result's metadata.
func (s *server) list(ctx context.Context) (wire.Result, error) {
	s.mu.Lock()
	s.changed = false // a change from here on is news
	s.mu.Unlock()
	var (
		all    [][]byte
		left   int
		size   int
		cursor string
	)
	for range mostPages {
		text, err := s.request(ctx, "tools/list", func(int64) any {
			if cursor == "" {
				return map[string]any{}
			}
			return map[string]any{"cursor": cursor}
		}, nil)
		if err != nil {
			return wire.Result{}, err
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if json.Unmarshal(text, &page) != nil {
			return wire.Result{}, fmt.Errorf("the server of the toolkit %s gave a list of tools that is none", s.name)
		}
		for _, tool := range page.Tools {
			var named struct {
				Name string `json:"name"`
			}
			if json.Unmarshal(tool, &named) != nil || named.Name == "" || len(all) >= mostTools || size+len(tool) > mostList {
				left++
				continue
			}
			size += len(tool)
			all = append(all, tool)
		}
		if page.Next == "" || page.Next == cursor || len(page.Next) > longestLogged {
			break
		}
		cursor = page.Next
	}
	r := success(slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))) // no byte more than was counted
	if left > 0 {
		r.Metadata = map[string]json.RawMessage{"tools_left_out": json.RawMessage(fmt.Sprint(left))}
	}
	return r, nil
}

// call calls a tool.
func (s *server) call(ctx context.Context, tool string, arguments json.RawMessage, w watch) (wire.Result, error) {
	var told atomic.Int64
	progress := func(params json.RawMessage) {
		var p struct {
			Done  float64 `json:"progress"`
			Total float64 `json:"total"`
			Text  string  `json:"message"`
		}
		if told.Add(1) <= mostProgress && json.Unmarshal(params, &p) == nil {
			w.progress(wire.Progress(p))
		}
	}
	text, err := s.request(ctx, "tools/call", func(id int64) any {
		return map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{"progressToken": id}}
	}, progress)
	if err != nil {
		return wire.Result{}, err
	}
	r, err := contentOf(text)
	if err != nil {
		return wire.Result{}, fmt.Errorf("the server of the toolkit %s gave a result that is none: %w", s.name, err)
	}
	return r, nil
}

// describe adds to a result what is known about the server.
func (s *server) describe(r *wire.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Metadata == nil {
		r.Metadata = map[string]json.RawMessage{}
	}
	if len(s.info) > 0 {
		r.Metadata["toolkit_server"] = s.info
	}
	if s.changed {
		r.Metadata["toolkit_list_changed"] = json.RawMessage("true")
	}
	if s.junk > 0 {
		r.Metadata["toolkit_messages_ignored"] = json.RawMessage(fmt.Sprint(s.junk))
	}
}

var errNoContent = errors.New("it has no content")
