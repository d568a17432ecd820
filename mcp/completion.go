package mcp

import (
	"context"
	"slices"
	"strings"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

const (
	maxCompletions = 100             // values that one answer may hold, by the protocol
	completionTime = 5 * time.Second // what is typed waits for no engine longer
)

// completions offers values for the arguments of prompts and of the file resource:
// the caller's own sessions, and images that it may use. Nothing is offered for what
// is not known, prompts that are not there included.
type completions struct{ s *Server }

// CompletePromptArgument offers values for an argument of a prompt.
func (c completions) CompletePromptArgument(ctx context.Context, name string, argument mcpgo.CompleteArgument, _ mcpgo.CompleteContext) (*mcpgo.Completion, error) {
	for _, p := range allPrompts() {
		if p.name == name && slices.ContainsFunc(p.arguments, func(a promptArgument) bool { return a.name == argument.Name }) {
			return c.complete(ctx, argument), nil
		}
	}
	return offered(nil, ""), nil
}

// CompleteResourceArgument offers values for a variable of the file resource.
func (c completions) CompleteResourceArgument(ctx context.Context, uri string, argument mcpgo.CompleteArgument, _ mcpgo.CompleteContext) (*mcpgo.Completion, error) {
	if uri != fileTemplate {
		return offered(nil, ""), nil
	}
	return c.complete(ctx, argument), nil
}

// complete never fails: an engine that does not answer has nothing to offer.
func (c completions) complete(ctx context.Context, argument mcpgo.CompleteArgument) *mcpgo.Completion {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	who := c.s.callerOf(ctx)
	var all []string
	switch argument.Name {
	case "session_id":
		all = c.sessions(ctx, who)
	case "image":
		all = c.images(ctx, who)
	case "language":
		all = []string{"bash", "c", "go", "javascript", "perl", "python", "ruby", "rust", "typescript"}
	}
	return offered(all, argument.Value)
}

func (c completions) sessions(ctx context.Context, who caller) []string {
	if c.s.manager == nil {
		return nil
	}
	infos, _ := c.s.manager.List(ctx, who.owner)
	all := make([]string, len(infos))
	for i, info := range infos {
		all[i] = info.ID
	}
	return all
}

// images are those that the operator has named, and those of the caller's sessions.
func (c completions) images(ctx context.Context, who caller) []string {
	all := slices.DeleteFunc(slices.Clone(c.s.options.Images), func(image string) bool {
		return strings.ContainsAny(image, `*?[\`) || !who.mayUseImage(image)
	})
	if c.s.manager != nil {
		infos, _ := c.s.manager.List(ctx, who.owner)
		for _, info := range infos {
			all = append(all, info.Image)
		}
	}
	return all
}

// offered are the values that begin with what has been typed, in order.
func offered(all []string, typed string) *mcpgo.Completion {
	matching := []string{}
	for _, value := range all {
		if strings.HasPrefix(value, typed) {
			matching = append(matching, value)
		}
	}
	slices.Sort(matching)
	matching = slices.Compact(matching)
	return &mcpgo.Completion{
		Values: matching[:min(len(matching), maxCompletions)],
		Total:  len(matching), HasMore: len(matching) > maxCompletions,
	}
}
