// Client libraries as their users call them, against the server on the port given. Prints what went
// wrong and exits 1, or says "ok".
import assert from "node:assert/strict";
import { createRequire } from "node:module";

// Where the libraries were installed, which is not here.
const [root, port] = [process.argv[2], Number(process.argv[3])];
const require = createRequire(`${root}/`);
const { Client } = require("node-beanstalk");
const Jackd = require("jackd").default ?? require("jackd");

const refused = (promise, word) => assert.rejects(promise, (error) => String(error).includes(word) ||
  String(error.response).includes(word) || assert.fail(`expected ${word}, got ${error}`));

async function jackd() {
  const producer = new Jackd();
  const worker = new Jackd();
  await producer.connect({ host: "127.0.0.1", port });
  await worker.connect({ host: "127.0.0.1", port });
  assert.equal(await producer.use("jackd"), "jackd");
  assert.equal(await producer.getCurrentTube(), "jackd");
  assert.equal(Number(await worker.watch("jackd")), 2);
  assert.equal(Number(await worker.ignore("default")), 1);
  await refused(worker.ignore("jackd"), "NOT_IGNORED");

  const payload = "Grüße\0\n";  // of a Buffer jackd sends the JSON, whatever the server
  const id = await producer.put(payload, { priority: 7, ttr: 30 });
  const job = await worker.reserve();
  assert.equal(job.id, id);
  assert.equal(job.payload.toString(), payload);
  await worker.touch(id);
  await refused(producer.delete(id), "NOT_FOUND");
  await worker.release(id, { priority: 3, delay: 0 });
  assert.equal((await producer.peekReady()).id, id);
  assert.equal((await worker.reserveJob(id)).id, id);
  await worker.bury(id, 5);
  assert.equal((await producer.peekBuried()).id, id);
  assert.match(await producer.statsJob(id), /^state: buried$/m);
  assert.match(await producer.statsJob(id), /^pri: 5$/m);
  assert.equal(Number(await producer.kick(10)), 1);
  await worker.reserveWithTimeout(1);
  await worker.bury(id, 5);
  await producer.kickJob(id);
  assert.equal((await producer.peek(id)).id, id);
  await worker.reserve();
  await worker.delete(id);
  await refused(producer.peek(id), "NOT_FOUND");
  await refused(worker.reserveWithTimeout(0), "TIMED_OUT");

  // Cancel: the job of an order that was paid before its time.
  const later = await producer.put({ order: 1001 }, { delay: 1800 });
  assert.equal((await producer.peekDelayed()).id, later);
  assert.match(await producer.statsJob(later), /^state: delayed$/m);
  await worker.delete(later);

  // A delay, and a worker that waits for it.
  const begun = performance.now();  // which no one sets
  const due = await producer.put("soon", { delay: 1 });
  assert.equal((await worker.reserve()).id, due);
  assert.ok(performance.now() - begun >= 1000, "it came early");
  await worker.delete(due);

  // The warning of a deadline. A job whose time is over before the worker asks again is reserved anew.
  const short = await producer.put("short", { ttr: 1 });
  await worker.reserve();
  let warning;
  while (!warning) {
    warning = await worker.reserve().then(() => undefined, (error) => error);
  }
  await refused(Promise.reject(warning), "DEADLINE_SOON");
  await worker.delete(short);

  assert.match(await producer.stats(), /^max-job-size: 65535$/m);
  assert.match(await producer.listTubes(), /^- jackd$/m);
  assert.equal(await worker.listTubesWatched(), "---\n- jackd\n");

  // Many at once, and the connection's end gives back.
  const ids = await Promise.all([...Array(500).keys()].map((i) => producer.put(`many ${i}`)));
  assert.deepEqual(ids.map(Number), [...ids].map(Number).sort((a, b) => a - b));
  for (let i = 0; i < 10; ++i) {
    await worker.reserve();
  }
  await worker.quit();
  const other = new Jackd();
  await other.connect({ host: "127.0.0.1", port });
  await other.watch("jackd");
  for (let i = 0; i < 500; ++i) {
    await other.delete((await other.reserve()).id);
  }
  await other.quit();
  await producer.quit();
}

async function nodeBeanstalk() {
  const producer = new Client({ host: "127.0.0.1", port });
  const worker = new Client({ host: "127.0.0.1", port });
  await producer.connect();
  await worker.connect();
  assert.equal(await producer.use("node"), "node");
  assert.equal(await producer.listTubeUsed(), "node");
  await worker.watch("node");
  await worker.ignore("default");
  assert.deepEqual(await worker.listTubesWatched(), ["node"]);

  const put = await producer.put("Grüße\r\n", 40, 100, 0);
  assert.equal(put.state, "ready");
  const job = await worker.reserveWithTimeout(10);
  assert.equal(job.id, put.id);
  assert.equal(job.payload.toString(), "Grüße\r\n");
  assert.equal(await worker.touch(job.id), true);
  assert.equal(await producer.delete(job.id), false);
  const stats = await producer.statsJob(job.id);
  assert.equal(stats.state, "reserved");
  assert.equal(stats.tube, "node");
  assert.equal(stats.pri, 100);
  assert.equal(stats.ttr, 40);
  assert.equal(stats.reserves, 1);
  assert.equal(await worker.release(job.id, 9, 60), "delayed");
  assert.equal((await producer.peekDelayed()).id, job.id);
  assert.equal(await producer.kick(1), 1);
  assert.equal((await worker.reserveJob(job.id)).id, job.id);
  assert.equal(await worker.bury(job.id), true);
  assert.equal((await producer.peekBuried()).id, job.id);
  assert.equal(await producer.kickJob(job.id), true);
  assert.equal((await producer.peekReady()).id, job.id);
  assert.equal((await producer.peek(job.id)).id, job.id);
  assert.equal(await worker.delete(job.id), true);
  assert.equal(await producer.peek(job.id), null);
  assert.equal(await worker.reserveWithTimeout(0), null);
  const tube = await producer.statsTube("node");
  assert.equal(tube.name, "node");
  assert.equal(tube["total-jobs"] ?? tube.totalJobs, 1);
  const all = await producer.stats();
  assert.equal(all["max-job-size"] ?? all.maxJobSize, 65535);
  assert.ok((await producer.listTubes()).includes("node"));
  assert.equal(await producer.pauseTube("node", 1), true);
  assert.equal(await producer.statsTube("nobody-has-this"), null);
  await producer.disconnect();
  await worker.disconnect();
}

await jackd();
await nodeBeanstalk();
console.log("ok");
