// Prints a line for each test, and at the end how many passed and failed. A test that was skipped has failed.
const SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

export default async function* report(events) {
  let [passed, failed] = [0, 0];
  for await (const { type, data } of events) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    if (type === "test:diagnostic" && !SUMMARY.test(data.message)) yield `  ${data.message}\n`;
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite") continue;
    const ran = data.skip === undefined && data.todo === undefined;
    if (type === "test:pass" && ran) {
      passed += 1;
      yield `ok: ${data.name} (${Math.round(data.details.duration_ms)} ms)\n`;
    } else {
      failed += 1;
      yield `FAILED: ${data.name}\n${ran ? (data.details.error?.cause?.stack ?? data.details.error) : "it did not run"}\n`;
    }
  }
  if (passed === 0 || failed > 0) process.exitCode = 1;
  yield `${passed} passed, ${failed} failed\n`;
}
