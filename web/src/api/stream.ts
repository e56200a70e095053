// Server-sent events as the answer to a POST, which the browser's EventSource cannot ask for.

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** events reads server-sent events with JSON in them, until the answer ends. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const whole = text.split('\n\n');
      text = whole.pop()!;
      for (const event of whole) yield parse(event);
    }
  } finally {
    void reader.cancel();
  }
}

function parse(event: string): ServerEvent {
  const lines = event.split('\n');
  const field = (name: string) => lines.flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []));
  return { name: field('event')[0] ?? 'message', data: JSON.parse(field('data').join('\n')) };
}
