// Writes the keys of a workload, as the API's document describes them, for the form.
import { readFileSync, writeFileSync } from 'node:fs';

const document = JSON.parse(readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8'));
writeFileSync(new URL('src/api/keys.json', import.meta.url), JSON.stringify(document.components.schemas.Workload.properties));
