package worker

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"caisson/executor/wire"
)

// shape makes a result of whatever a tool has printed (ENV-8): an object that has
// status and result is taken as one, null is a failure, other JSON is the result as
// it is, and what is no JSON is a text.
func shape(printed []byte) wire.Result {
	value := bytes.TrimSpace(printed)
	if len(value) == 0 || !utf8.Valid(value) || !json.Valid(value) {
		return success(quoted(strings.TrimRight(strings.ToValidUTF8(string(printed), "\uFFFD"), "\r\n")))
	}
	if string(value) == "null" {
		return wire.Failure(wire.StatusError, "the tool returned null, which is no result")
	}
	if r, ok := toolResult(value); ok {
		return r
	}
	return success(value)
}

func success(value json.RawMessage) wire.Result {
	return wire.Result{Success: true, Status: wire.StatusSuccess, Result: value, Timestamp: time.Now().UTC()}
}

// toolResult reads an object as a result of the tool's own making. It is none
// without status and result, or with a status that is not one of a result: then it
// is data that happens to have such names. A failure that comes with a result is
// done_with_errors, never a success.
func toolResult(value []byte) (wire.Result, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return wire.Result{}, false
	}
	result, has := all["result"]
	var word string
	if !has || json.Unmarshal(all["status"], &word) != nil {
		return wire.Result{}, false
	}
	r := success(result)
	switch status := wire.Status(word); {
	case status == wire.StatusSuccess:
	case word == "error" || word == "failure" || word == "failed":
		r.Success, r.Status = false, wire.StatusDoneWithErrors
	case slices.Contains(wire.Statuses(), status):
		r.Success, r.Status = false, status
	default:
		return wire.Result{}, false
	}
	if fault := carry(&r, all); fault != "" {
		return wire.Failure(wire.StatusError, "the tool's result cannot be read: "+fault), true
	}
	return r, true
}

// carry takes over the other members of a tool's result. Those that a result does
// not have become metadata.
func carry(r *wire.Result, all map[string]json.RawMessage) (fault string) {
	said := true
	into := map[string]any{
		"success": &said, "error": &r.Error, "metadata": &r.Metadata, "files": &r.Files, "images": &r.Images, "voice_text": &r.VoiceText,
	}
	extra := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := all[name]
		switch target, known := into[name]; {
		case name == "status" || name == "result" || name == "timestamp":
		case name == "display_data":
			r.DisplayData = text
		case known:
			if json.Unmarshal(text, target) != nil {
				return name + " has the wrong type"
			}
		default:
			extra[name] = text
		}
	}
	if !said && r.Status == wire.StatusSuccess {
		r.Success, r.Status = false, wire.StatusDoneWithErrors // a failure is never a success
	}
	if !r.Success && r.Error == "" {
		r.Error = "the tool says that it failed, and not why"
	}
	maps.Copy(extra, r.Metadata)
	r.Metadata = extra
	return ""
}
