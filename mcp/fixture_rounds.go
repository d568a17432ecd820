//go:build conformance

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// round is what a call asks for before it answers, under the state that it hands out.
type round struct {
	state string
	asks  []ask
}

// ask is one thing that the client is asked for.
type ask struct {
	key        string
	capability string // that the client must have: elicitation, sampling or roots
	question   string
	field      string // of an elicitation's answer
	kind       string // of the field
}

func (r round) builder() *server.InputRequestBuilder {
	b := server.NewInputRequestBuilder(r.state)
	for _, a := range r.asks {
		switch a.capability {
		case "elicitation":
			b.Elicit(a.key, mcpgo.ElicitationParams{Message: a.question, RequestedSchema: map[string]any{
				"type": "object", "properties": map[string]any{a.field: map[string]any{"type": a.kind}}, "required": []string{a.field},
			}})
		case "sampling":
			b.Sample(a.key, mcpgo.CreateMessageParams{MaxTokens: 100, Messages: []mcpgo.SamplingMessage{{Role: mcpgo.RoleUser, Content: mcpgo.NewTextContent(a.question)}}})
		case "roots":
			b.Roots(a.key)
		}
	}
	return b
}

// answered says whether all is there that a round has asked for, in the form that it
// must have.
func (r round) answered(got mcpgo.InputResponses) bool {
	return len(r.asks) > 0 && !slices.ContainsFunc(r.asks, func(a ask) bool {
		switch a.capability {
		case "elicitation":
			answer := server.ElicitationResponse(got, a.key)
			return answer == nil || answer.Action == ""
		case "sampling":
			return server.SamplingResponse(got, a.key) == nil
		default:
			return server.RootsResponse(got, a.key) == nil
		}
	})
}

// inRounds is a tool that answers with what it has been told once all rounds are over.
// A state that it has not handed out is refused.
func inRounds(name, last string, rounds ...round) fixture {
	return fixture{name: name, about: "Asks in rounds.", run: func(_ context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		at, got := 0, request.Params
		if got.RequestState != "" {
			if at = slices.IndexFunc(rounds, func(r round) bool { return r.state == got.RequestState }); at < 0 {
				return nil, errors.New(codedSentence(mcpgo.INVALID_PARAMS, nil, "requestState is not one of ours"))
			}
		}
		if rounds[at].answered(got.InputResponses) {
			at++
		}
		if at < len(rounds) {
			return rounds[at].builder().ToolResult(), nil
		}
		return mcpgo.NewToolResultText(last + told(got.InputResponses)), nil
	}}
}

// told is what the client has answered, in words.
func told(got mcpgo.InputResponses) string {
	text := ""
	for key := range got {
		if answer := server.ElicitationResponse(got, key); answer != nil && answer.Content != nil {
			content, _ := answer.Content.(map[string]any)
			for _, value := range content {
				text += fmt.Sprintf(" %v", value)
			}
		}
		if answer := server.SamplingResponse(got, key); answer != nil {
			text += fmt.Sprintf(" %v", answer.Content)
		}
		if answer := server.RootsResponse(got, key); answer != nil {
			for _, root := range answer.Roots {
				text += " " + root.URI
			}
		}
	}
	return text
}

func (s *Server) roundFixtures() []fixture {
	name := ask{"user_name", "elicitation", "What is your name?", "name", "string"}
	confirm := ask{"confirm", "elicitation", "Please confirm", "ok", "boolean"}
	roots := ask{key: "client_roots", capability: "roots"}
	sample := func(key, question string) ask {
		return ask{key: key, capability: "sampling", question: question}
	}
	const tool = "test_input_required_result_"
	return []fixture{
		inRounds(tool+"elicitation", "Hello,", round{"", []ask{name}}),
		inRounds(tool+"sampling", "The model says", round{"", []ask{sample("capital_question", "What is the capital of France?")}}),
		inRounds(tool+"list_roots", "Roots:", round{"", []ask{roots}}),
		inRounds(tool+"request_state", "state-ok", round{"state-1", []ask{confirm}}),
		inRounds(tool+"tampered_state", "state-ok", round{"sealed-5b1d", []ask{confirm}}),
		inRounds(tool+"multiple_inputs", "All:", round{"several", []ask{name, sample("greeting", "Generate a greeting"), roots}}),
		inRounds(tool+"multi_round", "Done:",
			round{"round-1", []ask{{"step1", "elicitation", "Step 1: What is your name?", "name", "string"}}},
			round{"round-2", []ask{{"step2", "elicitation", "Step 2: What is your favorite color?", "color", "string"}}}),
		inRounds("test_streaming_elicitation", "Hello,", round{"", []ask{name}}),
		{name: tool + "capabilities", about: "Asks for what the client can give.", run: s.askWhatIsThere},
		{name: "test_missing_capability", about: "Needs sampling.", run: func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return nil, errors.New(codedSentence(mcpgo.MISSING_REQUIRED_CLIENT_CAPABILITY, map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}}, "sampling is needed"))
		}},
		{
			name: "test_custom_headers", about: "Has an argument that is repeated in a header.",
			input: `"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"},"urgent":{"type":"boolean","x-mcp-header":"Urgent"}`,
			run:   gives("", "", false, mcpgo.NewTextContent("taken")).run,
		},
	}
}

func (s *Server) askWhatIsThere(ctx context.Context, _ mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
	var r round
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientCapabilities != nil {
		if info.ClientCapabilities.Elicitation != nil {
			r.asks = append(r.asks, ask{"user_name", "elicitation", "What is your name?", "name", "string"})
		}
		if info.ClientCapabilities.Sampling != nil {
			r.asks = append(r.asks, ask{key: "greeting", capability: "sampling", question: "Generate a greeting"})
		}
	}
	return r.builder().ToolResult(), nil
}

// addRoundPrompt adds the prompt that asks.
func (s *Server) addRoundPrompt() {
	r := round{"", []ask{{"user_context", "elicitation", "What context should the prompt use?", "context", "string"}}}
	s.mcp.AddPrompt(mcpgo.NewPrompt("test_input_required_result_prompt", mcpgo.WithPromptDescription("Asks.")),
		func(_ context.Context, request mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
			if !r.answered(request.Params.InputResponses) {
				return r.builder().PromptResult(), nil
			}
			text := mcpgo.NewTextContent("In this context:" + told(request.Params.InputResponses))
			return &mcpgo.GetPromptResult{Messages: []mcpgo.PromptMessage{mcpgo.NewPromptMessage(mcpgo.RoleUser, text)}}, nil
		})
}
