//go:build conformance

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// What the suite wants to get back: an image of one pixel, and silence.
const (
	onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence  = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

// fixture is one tool of the suite. Their names and answers are the suite's.
type fixture struct {
	name, about string
	input       string // the properties of its schema
	run         func(ctx context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error)
}

// addFixtures adds what the protocol's conformance suite calls, so that all of it can
// be run through our transports.
func (s *Server) addFixtures() {
	s.mcp.EnableSampling()
	for _, f := range slices.Concat(contentFixtures(), s.talkingFixtures(), s.askingFixtures(), s.roundFixtures()) {
		schema := json.RawMessage(`{"type":"object","properties":{` + f.input + `}}`)
		if strings.HasPrefix(f.input, "{") {
			schema = json.RawMessage(f.input)
		}
		s.mcp.AddTool(mcpgo.NewToolWithRawSchema(f.name, f.about, schema), f.run)
	}
	s.addFixtureResources()
	s.addFixturePrompts()
	s.addRoundPrompt()
}

// gives is a tool that always answers the same.
func gives(name, about string, isError bool, content ...mcpgo.Content) fixture {
	return fixture{name: name, about: about, run: func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return &mcpgo.CallToolResult{Content: content, IsError: isError}, nil
	}}
}

func contentFixtures() []fixture {
	embedded := func(uri, mime, text string) mcpgo.Content {
		return mcpgo.NewEmbeddedResource(mcpgo.TextResourceContents{URI: uri, MIMEType: mime, Text: text})
	}
	return []fixture{
		gives("test_simple_text", "Answers with text.", false, mcpgo.NewTextContent("This is a simple text response for testing.")),
		gives("test_image_content", "Answers with an image.", false, mcpgo.NewImageContent(onePixel, "image/png")),
		gives("test_audio_content", "Answers with a sound.", false, mcpgo.NewAudioContent(silence, "audio/wav")),
		gives("test_embedded_resource", "Answers with a resource.", false,
			embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
		gives("test_multiple_content_types", "Answers with several kinds of content.", false,
			mcpgo.NewTextContent("Multiple content types test:"), mcpgo.NewImageContent(onePixel, "image/png"),
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
		gives("test_error_handling", "Fails.", true, mcpgo.NewTextContent("This tool intentionally returns an error for testing")),
		{
			name: "json_schema_2020_12_tool", about: "Has a schema of many keywords.",
			input: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
				`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
				`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`,
			run: gives("", "", false, mcpgo.NewTextContent("taken")).run,
		},
	}
}

// talkingFixtures say something while they run.
func (s *Server) talkingFixtures() []fixture {
	return []fixture{
		{name: "test_tool_with_logging", about: "Logs while it runs.", run: func(ctx context.Context, _ mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if err := s.mcp.SendLogMessageToClient(ctx, mcpgo.NewLoggingMessageNotification(mcpgo.LoggingLevelInfo, "fixture", line)); err != nil {
					return nil, err
				}
			}
			return mcpgo.NewToolResultText("logged"), nil
		}},
		{name: "test_logging_tool", about: "Logs while it runs, where the request asks for it.", run: func(ctx context.Context, _ mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			err := s.mcp.SendLogMessageToClient(ctx, mcpgo.NewLoggingMessageNotification(mcpgo.LoggingLevelInfo, "fixture", "a line"))
			return mcpgo.NewToolResultText("logged"), err
		}},
		{name: "test_tool_with_progress", about: "Reports progress.", run: func(ctx context.Context, _ mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			x := exchangeOf(ctx)
			for _, done := range []int{0, 50, 100} {
				if len(x.token) == 0 {
					break
				}
				if err := x.notify("notifications/progress", map[string]any{"progressToken": x.token, "progress": done, "total": 100}); err != nil {
					return nil, err
				}
			}
			return mcpgo.NewToolResultText("reported"), nil
		}},
	}
}

func (s *Server) addFixtureResources() {
	text := func(uri, mime, content string) []mcpgo.ResourceContents {
		return []mcpgo.ResourceContents{mcpgo.TextResourceContents{URI: uri, MIMEType: mime, Text: content}}
	}
	s.mcp.AddResource(mcpgo.NewResource("test://static-text", "static-text", mcpgo.WithResourceDescription("Text."), mcpgo.WithMIMEType("text/plain")),
		func(context.Context, mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			return text("test://static-text", "text/plain", "This is the content of the static text resource."), nil
		})
	s.mcp.AddResource(mcpgo.NewResource("test://static-binary", "static-binary", mcpgo.WithResourceDescription("An image."), mcpgo.WithMIMEType("image/png")),
		func(context.Context, mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			return []mcpgo.ResourceContents{mcpgo.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: onePixel}}, nil
		})
	s.mcp.AddResourceTemplate(mcpgo.NewResourceTemplate("test://template/{id}/data", "template", mcpgo.WithTemplateDescription("A template.")),
		func(_ context.Context, request mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(request.Params.URI, "test://template/"), "/data")
			return text(request.Params.URI, "application/json", fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)), nil
		})
}

func (s *Server) addFixturePrompts() {
	add := func(name string, arguments []string, messages func(a map[string]string) []mcpgo.Content) {
		options := []mcpgo.PromptOption{mcpgo.WithPromptDescription("A prompt of the suite.")}
		for _, argument := range arguments {
			options = append(options, mcpgo.WithArgument(argument, mcpgo.ArgumentDescription("An argument."), mcpgo.RequiredArgument()))
		}
		var handler server.PromptHandlerFunc = func(_ context.Context, request mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
			result := &mcpgo.GetPromptResult{}
			for _, content := range messages(request.Params.Arguments) {
				result.Messages = append(result.Messages, mcpgo.NewPromptMessage(mcpgo.RoleUser, content))
			}
			return result, nil
		}
		s.mcp.AddPrompt(mcpgo.NewPrompt(name, options...), handler)
	}
	add("test_simple_prompt", nil, func(map[string]string) []mcpgo.Content {
		return []mcpgo.Content{mcpgo.NewTextContent("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcpgo.Content {
		return []mcpgo.Content{mcpgo.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"]))}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcpgo.Content {
		return []mcpgo.Content{
			mcpgo.NewEmbeddedResource(mcpgo.TextResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}),
			mcpgo.NewTextContent("Please process the embedded resource above."),
		}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []mcpgo.Content {
		return []mcpgo.Content{mcpgo.NewImageContent(onePixel, "image/png"), mcpgo.NewTextContent("Please analyze the image above.")}
	})
}
