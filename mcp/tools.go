package mcp

// allTools is every built-in tool, in the order of the documentation.
func (s *Server) allTools() []tool {
	return []tool{
		s.execTool(),
		s.execOutputTool(),
		s.execInputTool(),
		s.execListTool(),
		s.killTool(),
		s.runTool(),
		s.uploadTool(),
		s.downloadTool(),
		s.editFileTool(),
		s.listFilesTool(),
		s.sessionCreateTool(),
		s.sessionListTool(),
		s.sessionExtendTool(),
		s.sessionDestroyTool(),
		s.workspaceListTool(),
		s.workspaceDeleteTool(),
	}
}

// ToolNames lists the built-in tools, in the order of the documentation. No tool of
// a manifest may take one of these names.
func ToolNames() []string {
	all := new(Server).allTools()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name
	}
	return names
}
