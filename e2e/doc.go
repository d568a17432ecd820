// Package e2e meets the built program the way its clients do, on a real engine:
// over stdio, Streamable HTTP and SSE, in both eras of the protocol, by raw
// JSON-RPC lines, by mcp-go, by the TypeScript SDK, the inspector and the
// conformance suite. It imports nothing of ours.
//
// CAISSON_TEST_ENGINE names a file of shell exports that point at the engine, as
// scripts/engine writes it; without it every test is skipped. Two programs live
// below: demo shows the main job to a newcomer, bench measures.
//
// Every server that a test starts has an instance name of its own that begins
// with the run's, so that other tests may use the engine at the same time. At the
// end nothing that carries such a name may be left on it.
package e2e
