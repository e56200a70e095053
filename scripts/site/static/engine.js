// The worker in which the page's questions are answered: loads the program that the worker is
// named after, and the source of models when the first of them needs it.
importScripts('wasm_exec.js');

const ready = new Promise((resolve) => {
  self.memorymarkReady = resolve;
});

// A worker may wait for a file; the program does, and asks for this one at most once.
self.memorymarkTrees = () => {
  const request = new XMLHttpRequest();
  request.open('GET', 'transformers.zip', false);
  request.responseType = 'arraybuffer';
  try {
    request.send();
  } catch {
    return null;
  }
  return request.status === 200 ? new Uint8Array(request.response) : null;
};

const go = new Go();
const file = fetch(`${self.name || 'engine'}.wasm`);
// A host may not know the type of .wasm files, which streaming needs.
WebAssembly.instantiateStreaming(file.then((r) => r.clone()), go.importObject)
  .catch(async () => WebAssembly.instantiate(await (await file).arrayBuffer(), go.importObject))
  .then(({ instance }) => go.run(instance))
  .then(() => Promise.reject(new Error('The program in this page stopped: it may have needed more memory than a page has.')))
  .catch((error) => self.postMessage({ failed: error.message }));

self.onmessage = async ({ data: { id, method, target, body } }) => {
  await ready;
  const answer = self.memorymarkAsk(method, target, body);
  self.postMessage({ id, status: answer.status, type: answer.type, body: answer.body.buffer }, [answer.body.buffer]);
};
