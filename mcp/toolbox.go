package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/executor"
)

// Toolbox runs the tools of a manifest. Its methods may be called concurrently.
type Toolbox interface {
	// Definitions are the tools there are now, by name. None has the name of a
	// built-in tool. It does not block.
	Definitions() []executor.Definition
	// Listed returns when every toolkit has been listed or has failed once, or
	// with ctx.
	Listed(ctx context.Context)
	// Listing says whether there may soon be others, since a toolkit is still being
	// listed. It does not block.
	Listing() bool
	// OnChange names what is called each time the definitions have changed. It
	// is called before anything else of the toolbox, once.
	OnChange(changed func())
	// Call runs one call until it has ended, its own timeout has run out or ctx
	// has ended; it has been stopped then. The error means that nothing ran.
	// progress may be nil, and is not called after Call has returned.
	Call(ctx context.Context, c executor.Caller, name string, arguments json.RawMessage, progress func(executor.Progress)) (executor.Result, error)
}

// listWait is how long a client's first list of the tools waits for toolkits
// that are still being listed.
const listWait = 10 * time.Second

// declared keeps mcp-go's tools as the toolbox has them.
type declared struct {
	box  Toolbox // nil: there is no manifest
	wait time.Duration

	change sync.Mutex // one change of mcp-go's tools at a time
	shown  []byte     // the definitions that are registered

	mu     sync.Mutex
	listed bool                // every toolkit has been listed once
	asked  map[string]struct{} // clients that have waited for a list
}

// follow registers the manifest's tools, now and after each change.
func (s *Server) follow() {
	if s.declared.box == nil {
		return
	}
	s.declared.box.OnChange(s.refresh)
	s.refresh()
}

// refresh makes mcp-go's tools the built-in ones and those that the toolbox has
// now; mcp-go tells the clients. Where nothing has changed nobody is told.
func (s *Server) refresh() {
	d := &s.declared
	d.change.Lock()
	defer d.change.Unlock()
	definitions := d.box.Definitions()
	shown, err := json.Marshal(definitions)
	if err == nil && bytes.Equal(shown, d.shown) {
		return
	}
	all := slices.Clone(s.builtin)
	for _, definition := range definitions {
		if s.isBuiltin(definition.Name) {
			s.log.Error("a tool of the manifest has the name of a built-in one and is not listed", "tool", definition.Name)
			continue
		}
		entry, err := s.entry(s.declaredTool(definition))
		if err != nil {
			s.log.Error("a tool of the manifest cannot be listed", "tool", definition.Name, "error", err)
			continue
		}
		all = append(all, entry)
	}
	if err := setTools(s.mcp, all); err != nil {
		s.log.Error("the tools of the manifest cannot be listed", "error", err)
		return
	}
	d.shown = shown
}

// setTools gives mcp-go all tools. It panics over what it does not take, and
// part of it comes out of containers.
func setTools(s *server.MCPServer, all []server.ServerTool) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	s.SetTools(all...)
	return nil
}

func (s *Server) isBuiltin(name string) bool {
	return slices.ContainsFunc(s.builtin, func(t server.ServerTool) bool { return t.Tool.Name == name })
}

// beforeList lets the first list of a client wait for toolkits that are still
// being listed: many clients ask once and never again.
func (s *Server) beforeList(ctx context.Context) {
	d := &s.declared
	if d.box == nil || !d.first(s.callerOf(ctx).key()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	d.box.Listed(ctx)
	if ctx.Err() == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.listed, d.asked = true, nil // whoever comes now finds them listed
	}
}

// first says whether this is the first list of a client before all is listed.
func (d *declared) first(client string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, again := d.asked[client]; again || d.listed {
		return false
	}
	if d.asked == nil {
		d.asked = map[string]struct{}{}
	}
	d.asked[client] = struct{}{}
	return true
}

// forget drops what is kept of a client that has left.
func (d *declared) forget(client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, client)
}

// ordered lists the built-in tools first, each part by name. mcp-go asks it for
// every list.
func (s *Server) ordered(_ context.Context, tools []mcpgo.Tool) []mcpgo.Tool {
	if len(tools) < 2 || s.declared.box == nil {
		return tools
	}
	rank := func(t mcpgo.Tool) int {
		if s.isBuiltin(t.Name) {
			return 0
		}
		return 1
	}
	slices.SortFunc(tools, func(a, b mcpgo.Tool) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return tools
}
