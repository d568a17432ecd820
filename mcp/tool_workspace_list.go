package mcp

import (
	"context"
	"time"
)

type noInput struct{}

func (*noInput) fields() []field { return nil }

type workspaceListResult struct {
	Workspaces []workspaceView `json:"workspaces" about:"By key."`
}

type workspaceView struct {
	WorkspaceKey string    `json:"workspace_key" about:"Its name."`
	CreatedAt    time.Time `json:"created_at" about:"When it was made."`
	InUse        bool      `json:"in_use" about:"Whether a session holds it."`
}

func (s *Server) workspaceListTool() tool {
	return define[noInput, workspaceListResult](about{
		name: "workspace_list", title: "List workspaces",
		description: "Lists your persistent workspaces: those made by session_create with a workspace_key. They outlive their sessions.",
		readOnly:    true, idempotent: true,
	}, (*noInput).fields, s.workspaceList)
}

func (s *Server) workspaceList(ctx context.Context, c *call, _ *noInput) (*reply, error) {
	all, err := s.manager.Workspaces(ctx, c.owner)
	if err != nil {
		return nil, err
	}
	result := workspaceListResult{Workspaces: make([]workspaceView, len(all))}
	for i, w := range all {
		result.Workspaces[i] = workspaceView{w.Key, w.CreatedAt.UTC().Truncate(time.Second), w.InUse}
	}
	return jsonReply(result, "%d workspaces", len(all))
}
