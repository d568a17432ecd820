package mcp

import (
	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// SetLogLevel keeps what logging/setLevel asks for.
func (p *peer) SetLogLevel(level mcpgo.LoggingLevel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

// GetLogLevel is the level below which a client wants no log messages.
func (p *peer) GetLogLevel() mcpgo.LoggingLevel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.level
}

// SetProtocolVersion keeps the version that initialize has agreed on.
func (p *peer) SetProtocolVersion(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = version
}

// ProtocolVersion is the version that initialize has agreed on.
func (p *peer) ProtocolVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}
