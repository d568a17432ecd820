package mcp

import "context"

type execListInput struct{ session *string }

type execListResult struct {
	Execs []execInfo `json:"execs" about:"Oldest first."`
}

func (in *execListInput) fields() []field {
	return []field{nameField("session_id", &in.session, "Only the commands of this session. Default: all of yours.")}
}

func (s *Server) execListTool() tool {
	return define[execListInput, execListResult](about{
		name: "exec_list", title: "List commands",
		description: "Lists your commands, running and ended ones that are still kept, without their output: exec_id, status, exit code, how much they printed. Use it to find an exec_id again.",
		readOnly:    true, idempotent: true,
	}, (*execListInput).fields, s.execList)
}

func (s *Server) execList(_ context.Context, c *call, in *execListInput) (*reply, error) {
	session := or(in.session, "")
	c.session = session
	execs, err := s.manager.Execs(c.owner, session)
	if err != nil {
		return nil, err
	}
	if session != "" && len(execs) == 0 {
		// No commands is an answer only for a session that there is.
		if _, err := s.manager.Session(c.owner, session); err != nil {
			return nil, err
		}
	}
	result := execListResult{Execs: make([]execInfo, len(execs))}
	for i, e := range execs {
		result.Execs[i] = execInfoOf(e, e.View())
	}
	return jsonReply(result, "%d commands", len(execs))
}
