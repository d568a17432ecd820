// What every Node.js client of the matrix does once it is connected, whatever its make.
// A client brings era, list(), call(name, args, onprogress) and close(); the steps end in one
// line of JSON on standard output, and in exit status 1 when something is wrong.

import assert from "node:assert/strict";

// play takes connect(headers), which returns a connected client, and the token to come
// with; without a token nothing is asked about tokens.
export async function play(connect, token) {
  const client = await connect(token && `Bearer ${token}`);
  const tools = await client.list();
  // A server that has just started may ask for a moment's patience.
  for (const deadline = Date.now() + 30_000; (await client.call("session_list", {})).isError; ) {
    assert.ok(Date.now() < deadline, "no list of sessions after 30 s");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }

  const wrong = await client.call("exec", { session_id: "sbx_0000000000000000000000", command: "true" });
  assert.ok(wrong.isError, "a handle that never was");
  const code = wrong.content[0].text.split(":")[0];

  const { session_id } = await client.ok("session_create");
  const steps = [];
  const run = await client.ok("exec", { session_id, command: "for i in 1 2 3 4; do echo $i; sleep 1; done", wait_seconds: 40 }, (p) => steps.push(p.progress));
  assert.deepEqual(steps, [...steps].sort((a, b) => a - b), "progress falls");
  assert.ok((await client.ok("session_list")).sessions.some((session) => session.session_id === session_id));
  assert.equal((await client.ok("session_destroy", { session_id })).destroyed, true);
  await client.close();

  const refused = [];
  for (const other of token ? [`Bearer ${token}x`, undefined] : []) {
    refused.push(await connect(other).then(() => "let in", (err) => `${err.code ?? err.status ?? ""} ${err.message}`));
  }
  console.log(JSON.stringify({ tools, code, stdout: run.stdout, steps: steps.length, era: client.era, refused }));
}

// typed adds ok(), which wants a success with a structured result.
export function typed(client) {
  return Object.assign(client, {
    async ok(name, args = {}, onprogress = undefined) {
      const result = await client.call(name, args, onprogress);
      assert.ok(!result.isError, `${name}: ${result.content?.[0]?.text}`);
      assert.ok(result.structuredContent, `${name}: no structured content`);
      return result.structuredContent;
    },
  });
}
