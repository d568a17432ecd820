package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"caisson/cli"
	"caisson/executor"
)

func TestENV07_TheWorkerIsACommandOfTheBinaryToo(t *testing.T) {
	e := executor.Envelope{ToolPath: executor.AgentPath, Nonce: executor.NewNonce()}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) (code int, stdout string) {
		var out, errs bytes.Buffer
		code = cli.Run(context.Background(), cli.Process{Args: append([]string{"worker"}, args...), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
		return code, out.String()
	}
	code, out := run(string(text), "--envelope", "-")
	if r := executor.ReadResult([]byte(out), e.Nonce); code != 0 || !strings.Contains(r.Error, "agent_ref") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _ := run("{"); code != 2 {
		t.Errorf("an envelope that cannot be read: exit %d", code)
	}
}
