import assert from 'node:assert/strict';
import test from 'node:test';
import * as tally from './tally.js';

test('the sum', () => assert.equal(tally.sum([1, 2, 6]), 9));
test('the mean', () => assert.equal(tally.mean([1, 2, 6]), 3));
test('the mean of an empty list', () => assert.equal(tally.mean([]), 0));
