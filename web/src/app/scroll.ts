/** beginAtTop scrolls to the top of a page that one goes to by a link; the browser itself goes back to where one was. */
export function beginAtTop() {
  let path = location.pathname;
  addEventListener('popstate', () => (path = location.pathname));
  // wouter tells of each place that is pushed, a change of the question on the same page too.
  addEventListener('pushState', () => {
    if (location.pathname !== path) scrollTo(0, 0);
    path = location.pathname;
  });
}
