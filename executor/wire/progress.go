package wire

import (
	"bytes"
	"encoding/json"
)

// Progress is how far a call has come.
type Progress struct {
	Done, Total float64 // in a unit of the tool's own; Total 0: not known
	Text        string
}

// longestProgress bounds the text of a line of progress, in bytes.
const longestProgress = 1 << 10

type wireProgress struct {
	Done  float64 `json:"progress"`
	Total float64 `json:"total,omitempty"`
	Text  string  `json:"message,omitempty"`
}

func progressMark(nonce string) []byte { return []byte("__CAISSON_TOOL_PROGRESS_" + nonce + "__ ") }

// EncodeProgress gives the line that the worker prints, after what was printed
// before; it is nothing for numbers that JSON does not have.
func EncodeProgress(p Progress, nonce string) []byte {
	if len(p.Text) > longestProgress {
		p.Text = cutText([]byte(p.Text[:longestProgress]))
	}
	text, err := json.Marshal(wireProgress(p))
	if err != nil {
		return nil
	}
	return bytes.Join([][]byte{[]byte("\n"), progressMark(nonce), text, []byte("\n")}, nil)
}

// ReadProgress reads a line of the worker's standard output; false where it is no
// progress of the call with that nonce.
func ReadProgress(line []byte, nonce string) (Progress, bool) {
	text, ok := bytes.CutPrefix(line, progressMark(nonce))
	if !ok || !nonceForm.MatchString(nonce) {
		return Progress{}, false
	}
	var w wireProgress
	if json.Unmarshal(bytes.TrimSpace(text), &w) != nil {
		return Progress{}, false
	}
	return Progress(w), true
}
