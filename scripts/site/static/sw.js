// Keeps the site for when there is no network: the page and its program when it is first
// visited, everything else when it is looked at. FILES and VERSION are filled in.
const cache = 'memorymark-VERSION';
const files = FILES;

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(cache).then((c) => c.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((n) => n.startsWith('memorymark-') && n !== cache).map((n) => caches.delete(n))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || new URL(request.url).origin !== self.location.origin) return;
  event.respondWith(
    caches.match(request, { ignoreSearch: true }).then(
      (kept) =>
        kept ??
        fetch(request).then((answer) => {
          if (answer.ok) {
            const copy = answer.clone();
            event.waitUntil(caches.open(cache).then((c) => c.put(request, copy)));
          }
          return answer;
        }),
    ),
  );
});
