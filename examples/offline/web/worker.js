// Keeps the page and its keys: from the server where it answers, from the cache where it does not.

const CACHE = "offline-notes";
const FILES = ["/", "/page.js", "/keys/offline_page.js", "/keys/offline_page_bg.wasm"];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)));
});

addEventListener("fetch", (event) => {
  // What the server says about notes is never old.
  if (new URL(event.request.url).pathname.startsWith("/api/")) return;
  event.respondWith((async () => {
    const cache = await caches.open(CACHE);
    try {
      const answer = await fetch(event.request);
      if (answer.ok) await cache.put(event.request, answer.clone());
      return answer;
    } catch (error) {
      const kept = await cache.match(event.request);
      if (kept) return kept;
      throw error;
    }
  })());
});
