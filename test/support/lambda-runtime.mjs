// What Lambda's own runtime does, in ten lines: fetches invocations and posts their results.
const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const { handler } = await import(process.env.RESPONDER_FILE);
for (;;) {
  const next = await fetch(`${api}/next`);
  const id = next.headers.get("lambda-runtime-aws-request-id");
  const endsAt = Number(next.headers.get("lambda-runtime-deadline-ms"));
  const context = { getRemainingTimeInMillis: () => endsAt - Date.now() };
  const [place, body] = await handler(await next.json(), context).then(
    (answer) => ["response", answer],
    (error) => ["error", { errorMessage: error.message, errorType: error.name }],
  );
  await fetch(`${api}/${id}/${place}`, { method: "POST", body: JSON.stringify(body) });
}
