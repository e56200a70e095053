// Runs before the first paint, so that no other theme flashes: the one that was
// chosen, else the system's.
let theme;
try {
  theme = localStorage.getItem('memorymark.theme');
} catch {
  // No storage: the system's it is.
}
document.documentElement.dataset.theme = theme === 'light' || theme === 'dark' ? theme : matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark';
