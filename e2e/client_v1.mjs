// The TypeScript SDK v1 in the matrix of clients. It speaks the versions up to 2025-11-25.
//
// Usage: node client_v1.mjs stdio PROGRAM | http URL | sse URL
// CAISSON_TOKEN is the token to come with.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { play, typed } from "./client_steps.mjs";

const [kind, target] = process.argv.slice(2);

function transport(authorization) {
  const options = { requestInit: { headers: authorization ? { authorization } : {} } };
  switch (kind) {
    case "stdio":
      return new StdioClientTransport({ command: target, args: ["serve"], env: process.env, stderr: "ignore" });
    case "http":
      return new StreamableHTTPClientTransport(new URL("/mcp", target), options);
    default:
      return new SSEClientTransport(new URL("/sse", target), options);
  }
}

async function connect(authorization) {
  const client = new Client({ name: "matrix-v1", version: "1.0.0" });
  await client.connect(transport(authorization));
  return typed({
    era: "legacy",
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args, onprogress) => client.callTool({ name, arguments: args }, undefined, { onprogress }),
    close: () => client.close(),
  });
}

await play(connect, process.env.CAISSON_TOKEN);
