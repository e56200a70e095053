// Runs before the first paint, so that the chosen theme never flashes.
try {
  if (localStorage.getItem('memorymark.theme') === 'light') document.documentElement.dataset.theme = 'light';
} catch {
  // No storage: dark it is.
}
