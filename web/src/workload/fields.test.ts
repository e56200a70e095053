import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fields, first, more } from './fields';

interface Property {
  default?: unknown;
  description?: string;
  enum?: string[];
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../../docs/openapi.json'), 'utf8'));
const properties: Record<string, Property> = document.components.schemas.Workload.properties;

test('every key of a workload has a field', () => {
  const elsewhere = ['model', 'config', 'gpu', 'id', 'limit_gib'];
  expect([...Object.keys(fields), ...elsewhere].toSorted()).toEqual(Object.keys(properties).toSorted());
  expect([...first, ...more].toSorted()).toEqual(Object.keys(fields).toSorted());
});

test.each(Object.entries(fields))('%s is as the API has it', (key, field) => {
  const property = properties[key]!;
  expect(field.initial).toBe(property.default);
  expect(field.help).toBe(property.description);
  if (field.kind === 'choice') expect(Object.keys(field.options)).toEqual(property.enum);
});
