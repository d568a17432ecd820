package worker

import (
	"encoding/json"
	"fmt"
	"strings"

	"caisson/executor/wire"
)

// mostLeft is how many items that were left out are named in the metadata.
const mostLeft = 100

// item is a piece of the content of a tool's result.
type item struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     []byte  `json:"blob"`
	} `json:"resource"`
}

// contentOf makes a result of what a server answered to tools/call: its structured
// content where there is any, else its texts; images and the rest as what they are. An
// item that cannot be read is left out, and its number said.
func contentOf(answer json.RawMessage) (wire.Result, error) {
	var from struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(answer, &from); err != nil {
		return wire.Result{}, err
	}
	structured := len(from.Structured) > 0 && string(from.Structured) != "null"
	if from.Content == nil && !structured {
		return wire.Result{}, errNoContent
	}
	r := success(nil)
	var texts []string
	var left []int
	for i, raw := range from.Content {
		var one item
		if err := json.Unmarshal(raw, &one); err != nil {
			texts = append(texts, fmt.Sprintf("[item %d of the content could not be read and is left out]", i+1))
			left = append(left, i+1)
			continue
		}
		texts = append(texts, one.take(&r)...)
	}
	if len(left) > 0 {
		text, err := json.Marshal(left[:min(len(left), mostLeft)])
		if err != nil {
			return wire.Result{}, err
		}
		r.Metadata = map[string]json.RawMessage{"content_left_out": text}
	}
	text := strings.Join(texts, "\n")
	r.Result = quoted(text)
	if structured {
		r.Result = from.Structured
	}
	if from.IsError {
		r.Success, r.Status, r.Error = false, wire.StatusError, text
		if strings.TrimSpace(text) == "" {
			r.Error = "the tool failed and does not say why"
		}
	}
	return r, nil
}

// take puts an item into the result, or returns the text that it is.
func (i item) take(r *wire.Result) (text []string) {
	switch i.Type {
	case "text":
		return []string{i.Text}
	case "image":
		r.Images = append(r.Images, wire.File{Name: numbered("image", len(r.Images), i.MIMEType), MIMEType: i.MIMEType, Data: i.Data})
	case "audio":
		r.Files = append(r.Files, wire.File{Name: numbered("audio", len(r.Files), i.MIMEType), MIMEType: i.MIMEType, Data: i.Data})
	case "resource":
		data := i.Resource.Blob
		if i.Resource.Text != nil {
			data = []byte(*i.Resource.Text)
		}
		name := lastOf(i.Resource.URI)
		if name == "" {
			name = numbered("resource", len(r.Files), i.Resource.MIMEType)
		}
		r.Files = append(r.Files, wire.File{Name: name, MIMEType: i.Resource.MIMEType, Data: data})
	case "resource_link":
		return []string{i.URI}
	default:
		return []string{"[content of the unknown type " + string(quoted(i.Type)) + "]"}
	}
	return nil
}

// endings are those of names that we make up. The library's table would be read from
// files at each start.
func endings() map[string]string {
	return map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
		"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html", "text/csv": ".csv", "application/json": ".json", "application/pdf": ".pdf",
	}
}

func numbered(stem string, before int, kind string) string {
	return fmt.Sprintf("%s-%d%s", stem, before+1, endings()[kind])
}

// lastOf is the name at the end of a URI, without anything that a path could mean.
func lastOf(uri string) string {
	name := uri[strings.LastIndexAny(uri, "/\\:")+1:]
	if len(name) > 128 || strings.Trim(name, ".") == "" || strings.ContainsAny(name, "\x00\r\n") {
		return ""
	}
	return name
}
