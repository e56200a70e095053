// What came with the page: the server shows the question and its answer before this code is there (internal/server/start.go).
import type { QueryClient } from '@tanstack/react-query';
import type { Prediction, Schemas } from '../api/client';
import { questionOf } from '../workload/address';

interface Known {
  models: Schemas['Models'];
  gpus: Schemas['Cards'];
  prediction?: Prediction;
}

/** adopt takes over from the page of the server: what it knows, and what was chosen there since. */
export function adopt(queries: QueryClient) {
  const text = document.getElementById('known')?.textContent;
  if (!text) return;
  const { models, gpus, prediction } = JSON.parse(text) as Known;
  queries.setQueryData(['models'], models);
  queries.setQueryData(['gpus'], gpus);
  if (prediction) queries.setQueryData(['prediction', questionOf(location.search).workload], prediction);
  const form = document.querySelector('form');
  const chosen = form && [...form.querySelectorAll('select')].filter((select) => select.selectedOptions[0]?.defaultSelected === false);
  if (form && chosen && chosen.length > 0) history.replaceState(null, '', `/?${new URLSearchParams([...new FormData(form)].map(([key, value]) => [key, String(value)]))}`);
}

/** leisure waits while one is choosing there: a list that is open would close. */
export async function leisure() {
  const chosen = document.activeElement?.closest('form select');
  if (chosen) await new Promise((done) => ['change', 'blur'].forEach((type) => chosen.addEventListener(type, done, { once: true })));
}
