package mcp

import "context"

type workspaceDeleteInput struct{ key *string }

type workspaceDeleteResult struct {
	WorkspaceKey string `json:"workspace_key" about:"As asked for."`
	Deleted      bool   `json:"deleted" about:"Whether it was removed."`
}

func (in *workspaceDeleteInput) fields() []field {
	return []field{nameField("workspace_key", &in.key, "The workspace.").must()}
}

func (s *Server) workspaceDeleteTool() tool {
	return define[workspaceDeleteInput, workspaceDeleteResult](about{
		name: "workspace_delete", title: "Delete a workspace",
		description: "Deletes a persistent workspace with all its files, for good. Refused while a session holds it: destroy that first.",
		destructive: true,
	}, (*workspaceDeleteInput).fields, s.workspaceDelete)
}

func (s *Server) workspaceDelete(ctx context.Context, c *call, in *workspaceDeleteInput) (*reply, error) {
	if err := s.manager.DeleteWorkspace(ctx, c.owner, *in.key); err != nil {
		return nil, err
	}
	return jsonReply(workspaceDeleteResult{*in.key, true}, "the workspace %s was deleted", show(*in.key))
}
