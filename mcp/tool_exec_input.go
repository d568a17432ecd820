package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"caisson/sandbox"
)

// inputLimit is how long exec_input waits for a command that does not read.
const inputLimit = 10 * time.Second

type execInputInput struct {
	exec     *string
	data     *string
	encoding *string
	close    bool
}

type execInputResult struct {
	ExecID       string `json:"exec_id" about:"The command."`
	BytesWritten int    `json:"bytes_written" about:"How much of data was passed on."`
	StdinOpen    bool   `json:"stdin_open" about:"Whether it takes more."`
}

func encodingField(dst **string, about string) field {
	return textField("encoding", dst, about).oneOf(encodingText, encodingBase64).orElse(encodingText)
}

func (in *execInputInput) fields() []field {
	return []field{
		execIDField(&in.exec),
		textField("data", &in.data, "What to write. Nothing is added: end a line with a newline."),
		encodingField(&in.encoding, "How data is encoded."),
		boolField("close", &in.close, "Close standard input after data: the command then sees its end.").orElse(false),
	}
}

func (s *Server) execInputTool() tool {
	return define[execInputInput, execInputResult](about{
		name: "exec_input", title: "Write to a command",
		description: "Writes to the standard input of a running command that exec started with stdin_open, or closes it. " +
			"Answers within 10 s with how much was passed on, which the command need not have read yet; what it prints in answer is read with exec_output.",
		destructive: true, openWorld: true,
	}, (*execInputInput).fields, s.execInput)
}

func (s *Server) execInput(ctx context.Context, c *call, in *execInputInput) (*reply, error) {
	if in.data == nil && !in.close {
		return nil, sandbox.Invalid("data", "give data to write, or close, or both")
	}
	data, err := decodeContent("data", or(in.data, ""), in.encoding)
	if err != nil {
		return nil, err
	}
	c.exec = *in.exec
	e, err := s.manager.Exec(c.owner, *in.exec)
	if err != nil {
		return nil, err
	}
	c.session = e.SessionID()
	s.manager.Touch(c.owner, e.SessionID())
	limited, cancel := context.WithTimeout(ctx, inputLimit)
	defer cancel()
	var written int
	if len(data) > 0 {
		written, err = e.WriteStdin(limited, data)
	}
	if err == nil && in.close {
		err = e.CloseStdin(limited)
	}
	// A command that does not read is no failure of the call: it says how far it
	// got, and the caller may try again with the rest.
	slow := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err != nil && !slow {
		return nil, err
	}
	text := fmt.Sprintf("%d of %d bytes written", written, len(data))
	if slow {
		text += "; the command has not read the rest within 10 s"
	}
	return jsonReply(execInputResult{e.ID(), written, e.View().StdinOpen}, "%s", text)
}

// decodeContent turns an argument that came as text or as base64 into bytes.
func decodeContent(field, content string, encoding *string) ([]byte, error) {
	if or(encoding, encodingText) == encodingText {
		return []byte(content), nil
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, sandbox.Invalid(field, "%s is not base64 (the standard alphabet, with padding)", field)
	}
	return data, nil
}
