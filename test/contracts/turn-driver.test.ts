import { TurnRig } from './turn-rig.ts';
import { driverContract } from './driver.ts';

driverContract('the driver of headless turns', () => Promise.resolve(new TurnRig()));
