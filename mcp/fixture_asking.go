//go:build conformance

package mcp

import (
	"context"
	"fmt"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// askingFixtures ask the client something while they run.
func (s *Server) askingFixtures() []fixture {
	elicit := func(name, input string, message func(mcpgo.CallToolRequest) string, schema map[string]any) fixture {
		return fixture{name: name, about: "Asks the user.", input: input, run: func(ctx context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			got, err := s.mcp.RequestElicitation(ctx, mcpgo.ElicitationRequest{
				Params: mcpgo.ElicitationParams{Message: message(request), RequestedSchema: map[string]any{"type": "object", "properties": schema}},
			})
			if err != nil {
				return mcpgo.NewToolResultError(err.Error()), nil
			}
			return mcpgo.NewToolResultText(fmt.Sprintf("User response: action=%s, content=%v", got.Action, got.Content)), nil
		}}
	}
	fixed := func(text string) func(mcpgo.CallToolRequest) string {
		return func(mcpgo.CallToolRequest) string { return text }
	}
	kind := func(name string, more map[string]any) map[string]any {
		all := map[string]any{"type": name}
		for key, value := range more {
			all[key] = value
		}
		return all
	}
	titled := func(values ...string) []any {
		all := make([]any, len(values))
		for i, value := range values {
			all[i] = map[string]any{"const": value, "title": "Option " + value}
		}
		return all
	}
	return []fixture{
		s.samplingFixture(),
		elicit("test_elicitation", `"message":{"type":"string","description":"What to ask."}`,
			func(r mcpgo.CallToolRequest) string { return r.GetString("message", "") },
			map[string]any{"username": kind("string", nil), "email": kind("string", nil)}),
		elicit("test_elicitation_sep1034_defaults", "", fixed("Fill in."), map[string]any{
			"name": kind("string", map[string]any{"default": "John Doe"}), "age": kind("integer", map[string]any{"default": 30}),
			"score":    kind("number", map[string]any{"default": 95.5}),
			"status":   kind("string", map[string]any{"enum": []string{"active", "inactive", "pending"}, "default": "active"}),
			"verified": kind("boolean", map[string]any{"default": true}),
		}),
		elicit("test_elicitation_sep1330_enums", "", fixed("Choose."), map[string]any{
			"untitledSingle": kind("string", map[string]any{"enum": []string{"option1", "option2", "option3"}}),
			"titledSingle":   kind("string", map[string]any{"oneOf": titled("value1", "value2", "value3")}),
			"legacyEnum":     kind("string", map[string]any{"enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"One", "Two", "Three"}}),
			"untitledMulti":  kind("array", map[string]any{"items": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}}}),
			"titledMulti":    kind("array", map[string]any{"items": map[string]any{"anyOf": titled("value1", "value2", "value3")}}),
		}),
	}
}

func (s *Server) samplingFixture() fixture {
	return fixture{
		name: "test_sampling", about: "Asks the client's model.", input: `"prompt":{"type":"string","description":"What to ask."}`,
		run: func(ctx context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			got, err := s.mcp.RequestSampling(ctx, mcpgo.CreateMessageRequest{CreateMessageParams: mcpgo.CreateMessageParams{
				Messages:  []mcpgo.SamplingMessage{{Role: mcpgo.RoleUser, Content: mcpgo.NewTextContent(request.GetString("prompt", ""))}},
				MaxTokens: 100,
			}})
			if err != nil {
				return mcpgo.NewToolResultError(err.Error()), nil
			}
			text, _ := got.Content.(mcpgo.TextContent)
			return mcpgo.NewToolResultText("LLM response: " + text.Text), nil
		},
	}
}
