// Plays the main job through the official TypeScript SDK: makes a session,
// uploads, runs, kills, downloads and destroys, and calls every tool once. The
// SDK checks each structured result against the schema that the tool declares.
//
// Usage: node sdk.mjs stdio PROGRAM | http URL | sse URL
// What is wrong goes to standard error and makes the exit status 1.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target] = process.argv.slice(2);

const transports = {
  stdio: () => new StdioClientTransport({ command: target, args: ["serve"], env: process.env, stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL("/mcp", target)),
  sse: () => new SSEClientTransport(new URL("/sse", target)),
};

const client = new Client({ name: "e2e-sdk", version: "1.0.0" });
await client.connect(transports[kind]());

const { tools } = await client.listTools();
const unused = new Set(tools.map((tool) => tool.name));

async function call(name, args = {}, options = undefined) {
  unused.delete(name);
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.ok(result.content?.length > 0, `${name}: no content`);
  return result;
}

async function ok(name, args = {}, options = undefined) {
  const result = await call(name, args, options);
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
  assert.ok(result.structuredContent, `${name}: no structured content`);
  return result.structuredContent;
}

async function fails(code, name, args = {}) {
  const result = await call(name, args);
  assert.ok(result.isError, `${name} ${JSON.stringify(args)}: no error`);
  assert.match(result.content[0].text, new RegExp(`^${code}: `));
  assert.equal(result._meta?.code, code);
}

async function schemas() {
  assert.equal(client.getServerCapabilities().tasks, undefined, "tasks are advertised");
  assert.ok(client.getInstructions()?.length > 0, "no instructions");
  assert.equal(new Set(tools.map((tool) => tool.name)).size, tools.length);
  for (const tool of tools) {
    assert.match(tool.name, /^[a-z0-9_]{1,35}$/);
    assert.ok(tool.description.length > 20 && tool.description.length < 2048, tool.name);
    assert.equal(tool.inputSchema.type, "object", tool.name);
    assert.ok(tool.inputSchema.properties, tool.name);
    assert.equal(tool.outputSchema?.type, "object", tool.name);
    for (const hint of ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]) {
      assert.equal(typeof tool.annotations?.[hint], "boolean", `${tool.name} ${hint}`);
    }
  }
}

async function mainJob() {
  const { session_id } = await ok("session_create", { labels: { purpose: "sdk" } });
  const text = "print(sum(range(10)))\n";
  const up = await ok("upload", { session_id, path: "src/main.py", content: text });
  assert.equal(up.files[0].sha256, createHash("sha256").update(text).digest("hex"));

  const run = await ok("exec", { session_id, argv: ["python3", "src/main.py"] });
  assert.equal(run.stdout, "45\n");
  assert.equal(run.exit_code, 0);

  const failing = await ok("exec", { session_id, command: "echo to-stderr >&2; exit 3" });
  assert.equal(failing.exit_code, 3);
  assert.equal(failing.stderr, "to-stderr\n");

  const long = await ok("exec", { session_id, command: "echo up; sleep 600", wait_seconds: 20, wait_for: "up" });
  assert.equal(long.status, "running");
  assert.equal(long.exit_code, undefined);
  const killed = await ok("kill", { exec_id: long.exec_id });
  assert.equal(killed.status, "killed");
  assert.equal(killed.killed, true);
  assert.equal(killed.exit_code, 137);

  const echo = await ok("exec", { session_id, argv: ["cat"], stdin_open: true, wait_seconds: 0 });
  assert.equal((await ok("exec_input", { exec_id: echo.exec_id, data: "typed", close: true })).bytes_written, 5);
  assert.equal((await ok("exec_output", { exec_id: echo.exec_id, wait_seconds: 10, stdout_offset: 0 })).stdout, "typed");
  assert.ok((await ok("exec_list", { session_id })).execs.length >= 4);

  await ok("edit_file", { session_id, path: "src/main.py", old_string: "range(10)", new_string: "range(11)" });
  const down = await ok("download", { session_id, path: "src/main.py" });
  assert.equal(down.content, text.replace("range(10)", "range(11)"));
  assert.deepEqual((await ok("list_files", { session_id, recursive: true })).entries.map((entry) => entry.path), ["src", "src/main.py"]);

  const timed = await call("exec", { session_id, command: "echo partial; sleep 60", timeout_seconds: 1 });
  assert.ok(timed.isError);
  assert.equal(timed.structuredContent.status, "timed_out");
  assert.equal(timed.structuredContent.stdout, "partial\n");
  assert.equal(timed.structuredContent.exit_code === 0, false);

  assert.ok(Date.parse((await ok("session_extend", { session_id, ttl_seconds: 7200 })).expires_at) > Date.now() + 7_000_000);
  assert.ok((await ok("session_list")).sessions.some((session) => session.session_id === session_id));
  assert.equal((await ok("session_destroy", { session_id })).destroyed, true);
  assert.equal((await ok("session_destroy", { session_id })).destroyed, false);
  await fails("session_not_found", "exec", { session_id, command: "true" });
}

async function theRest() {
  const once = await ok("run", {
    command: "tr a-z A-Z < in.txt > out.txt",
    files: [{ path: "in.txt", content: "hello" }],
    outputs: ["out.txt"],
  });
  assert.equal(once.outputs[0].content, "HELLO");

  const key = `sdk-${kind}-${process.pid}`;
  const kept = await ok("session_create", { workspace_key: key });
  assert.equal(kept.durability, "persistent");
  await ok("session_destroy", { session_id: kept.session_id });
  assert.ok((await ok("workspace_list")).workspaces.some((workspace) => workspace.workspace_key === key));
  assert.equal((await ok("workspace_delete", { workspace_key: key })).deleted, true);
  await fails("workspace_not_found", "workspace_delete", { workspace_key: key });
  await fails("invalid_argument", "exec", { comand: "true" });
}

// Progress keeps a call alive past the SDK's limit, and an aborted one is
// cancelled on the server.
async function progressAndAbort() {
  const { session_id } = await ok("session_create");
  const seen = [];
  const slow = await ok(
    "exec",
    { session_id, command: "sleep 12; echo done", wait_seconds: 60 },
    { timeout: 11_000, resetTimeoutOnProgress: true, onprogress: (p) => seen.push(p.progress) },
  );
  assert.equal(slow.stdout, "done\n");
  assert.ok(seen.length >= 1, "no progress");
  assert.deepEqual(seen, [...seen].sort((a, b) => a - b));

  const abort = new AbortController();
  const aborted = client.callTool({ name: "exec", arguments: { session_id, command: "sleep 987" } }, undefined, { signal: abort.signal });
  const failed = assert.rejects(aborted);
  const running = async () => (await ok("exec", { session_id, command: "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep 987'" })).stdout.trim();
  await until(async () => (await running()) !== "0", "the command runs");
  abort.abort();
  await failed;
  await until(async () => (await running()) === "0", "the cancelled command is gone");
  await ok("session_destroy", { session_id });
}

async function until(holds, what) {
  const deadline = Date.now() + 15_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `after 15 s still not: ${what}`);
  }
}

await schemas();
await mainJob();
await theRest();
await progressAndAbort();
assert.deepEqual([...unused], [], "tools that were never called");
if (kind !== "sse") {
  await client.ping();
}
await client.close();
