package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// Status is how a tool call ended.
type Status string

// The states (ENV-9).
const (
	StatusSuccess        Status = "success"
	StatusError          Status = "error"
	StatusDoneWithErrors Status = "done_with_errors"
	StatusForbidden      Status = "forbidden"
	StatusPending        Status = "pending"
	StatusUnauthorized   Status = "authorization_required"
)

// Statuses lists every state once.
func Statuses() []Status {
	return []Status{StatusSuccess, StatusError, StatusDoneWithErrors, StatusForbidden, StatusPending, StatusUnauthorized}
}

// Result is what a tool call gave. What is in it was made inside a container and
// is untrusted.
type Result struct {
	Success     bool // never true of a failure
	Status      Status
	Result      json.RawMessage // any JSON value; nil: null
	Error       string
	Metadata    map[string]json.RawMessage
	Timestamp   time.Time
	Files       []File
	Images      []File
	VoiceText   string
	DisplayData json.RawMessage
}

// File is a file or an image that a tool hands over.
type File struct {
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	Data     []byte `json:"data"` // base64 in JSON
}

// Failure is a result that says what went wrong (TX-20: failures come back as
// results).
func Failure(status Status, text string) Result {
	return Result{Status: status, Error: text, Timestamp: time.Now().UTC()}
}

// wireResult is the JSON form.
type wireResult struct {
	Success     bool                       `json:"success"`
	Status      Status                     `json:"status"`
	Result      json.RawMessage            `json:"result"`
	Error       *string                    `json:"error"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
	Timestamp   time.Time                  `json:"timestamp"`
	Files       []File                     `json:"files"`
	Images      []File                     `json:"images"`
	VoiceText   *string                    `json:"voice_text,omitempty"`
	DisplayData json.RawMessage            `json:"display_data,omitempty"`
}

func resultFields() []string {
	return []string{"success", "status", "result", "error", "metadata", "timestamp", "files", "images", "voice_text", "display_data"}
}

// encode gives the JSON form, on one line.
func (r Result) encode() ([]byte, error) {
	w := wireResult{
		Success: r.Success, Status: r.Status, Result: r.Result, Error: orNull(r.Error), Metadata: r.Metadata, Timestamp: r.Timestamp,
		Files: r.Files, Images: r.Images, VoiceText: orNull(r.VoiceText), DisplayData: r.DisplayData,
	}
	if w.Result == nil {
		w.Result = json.RawMessage("null")
	}
	if w.Metadata == nil {
		w.Metadata = map[string]json.RawMessage{}
	}
	if w.Files == nil {
		w.Files = []File{}
	}
	if w.Images == nil {
		w.Images = []File{}
	}
	if fault := r.fault(); fault != "" {
		return nil, invalidResult("%s", fault)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // which would make six bytes of one
	if err := e.Encode(w); err != nil {
		return nil, invalidResult("a part of it is no JSON value")
	}
	return bytes.TrimSpace(b.Bytes()), nil // compacts what is raw: there is no line end in it
}

// fault says what is contradictory about a result, or nothing.
func (r Result) fault() string {
	switch {
	case !slices.Contains(Statuses(), r.Status):
		return "there is no status " + shown(string(r.Status))
	case r.Status == StatusSuccess && !r.Success:
		return "the status is success and success is false"
	case r.Success && slices.Contains([]Status{StatusError, StatusForbidden, StatusUnauthorized}, r.Status):
		return "the status is " + string(r.Status) + " and success is true"
	default:
		return ""
	}
}

// decodeResult reads the JSON form strictly: success, status and result have to be
// there, the rest may be left out.
func decodeResult(text []byte) (Result, error) {
	all, err := members(text, resultFields())
	if err != nil {
		return Result{}, invalidResult("%s", err)
	}
	for _, name := range []string{"success", "status", "result"} {
		if _, ok := all[name]; !ok {
			return Result{}, invalidResult("it has no field %s", name)
		}
	}
	r := Result{Result: all["result"], DisplayData: all["display_data"]}
	if err := fields(all, map[string]any{
		"success": &r.Success, "status": &r.Status, "error": &r.Error, "timestamp": &r.Timestamp, "voice_text": &r.VoiceText,
	}); err != nil {
		return Result{}, invalidResult("%s", err)
	}
	if r.Metadata, err = object(all["metadata"]); err != nil {
		return Result{}, invalidResult("metadata: %s", err)
	}
	if r.Files, err = decodeFiles(all["files"]); err != nil {
		return Result{}, invalidResult("files: %s", err)
	}
	if r.Images, err = decodeFiles(all["images"]); err != nil {
		return Result{}, invalidResult("images: %s", err)
	}
	if fault := r.fault(); fault != "" {
		return Result{}, invalidResult("%s", fault)
	}
	return r, nil
}

func decodeFiles(text json.RawMessage) ([]File, error) {
	if isNull(text) {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return nil, invalidResult("it is no list")
	}
	files := make([]File, len(items))
	for i, item := range items {
		all, err := members(item, []string{"name", "mime_type", "data"})
		if err != nil {
			return nil, err
		}
		f := &files[i]
		if err := fields(all, map[string]any{"name": &f.Name, "mime_type": &f.MIMEType, "data": &f.Data}); err != nil {
			return nil, err
		}
	}
	return files, nil
}
