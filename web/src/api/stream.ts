// Server-sent events as the answer to a POST, which the browser's EventSource cannot ask for.

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** events reads server-sent events with JSON in them, until the answer ends. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  for (let text = ''; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (text + value).split('\n\n');
    text = whole.pop()!;
    for (const event of whole) yield { name: field(event, 'event'), data: JSON.parse(field(event, 'data')) };
  }
}

const field = (event: string, name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(event)![1]!;
